"""Maze maps as data, and the geometry of a grid of square cells.

A map is a tuple of strings of equal length, one per row. Row 0 has the lowest y, so a map is upside down compared
with a picture of the maze: x runs along columns, y along rows. The world origin is the centre of the first start
cell (row by row), as in the paper's environments.

| symbol | meaning |
|---|---|
| `#` | wall |
| `.` or a space | free floor |
| `S` | free floor where an episode may start; with several, each reset draws one |
| `G` | free floor whose centre is the goal; optional, for custom maps |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

WALL = "#"
FREE = "."
START = "S"
GOAL = "G"
SYMBOLS = (WALL, FREE, START, GOAL)

U_SHAPE = (
    "#####",
    "#S..#",
    "###.#",
    "#...#",
    "#####",
)
"""The "⊃" of Point Maze and Ant Maze (U-shape): it starts at the bottom left and ends at the top left."""

W_SHAPE = (
    "##########",
    "#SSSSSSSS#",
    "#SSSSSSSS#",
    "#######SS#",
    "#.SSSSSSS#",
    "#.SSSSSSS#",
    "#######SS#",
    "#SSSSSSSS#",
    "#SSSSSSSS#",
    "##########",
)
"""The "∃" of Ant Maze (W-shape): no episode starts in the two cells at the end of the middle corridor."""


class Cell(NamedTuple):
    """A cell of a map: row 0 has the lowest y, column 0 the lowest x."""

    row: int
    column: int


def parse_map(source: str | Sequence[str] | Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Check a map, given as rows of symbols or as text with one row per line, and return its rows.

    A map with an open edge is surrounded with walls, so that nothing can leave the maze.

    Raises:
        ValueError: the map is empty, its rows differ in length, a symbol is unknown, there is no start cell, or more
            than one goal cell.
    """
    if isinstance(source, str):
        rows = [line for line in source.splitlines() if line.strip()]
    else:
        rows = [_row_text(row, index) for index, row in enumerate(source)]
    rows = [row.replace(" ", FREE) for row in rows]
    if not rows or not rows[0]:
        raise ValueError("the map is empty: give rows of '#', '.', 'S' (start) and 'G' (goal)")
    for index, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(f"map row {index} has {len(row)} cells but row 0 has {len(rows[0])}: {row!r}")
        for column, symbol in enumerate(row):
            if symbol not in SYMBOLS:
                raise ValueError(
                    f"unknown map symbol {symbol!r} at row {index}, column {column}; use '#' for a wall, '.' for "
                    "free floor, 'S' for a start, 'G' for the goal"
                )
    text = "".join(rows)
    if START not in text:
        raise ValueError("the map has no start: mark at least one cell with 'S'")
    if text.count(GOAL) > 1:
        raise ValueError(f"the map has {text.count(GOAL)} goals: mark one cell with 'G' at most")
    edge = rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows)
    if set(edge) != {WALL}:
        across = WALL * (len(rows[0]) + 2)
        rows = [across, *(WALL + row + WALL for row in rows), across]
    return tuple(rows)


def _row_text(row: str | Sequence[str], index: int) -> str:
    if isinstance(row, str):
        return row
    for column, symbol in enumerate(row):
        if not isinstance(symbol, str) or len(symbol) != 1:
            raise ValueError(f"unknown map symbol {symbol!r} at row {index}, column {column}; use '#', '.', 'S' or 'G'")
    return "".join(row)


class Maze:
    """The geometry of a map: where its cells are, and which points are inside walls.

    Args:
        map: rows of symbols; see the table of the module.
        cell: the side of a cell in metres.
    """

    def __init__(self, map: str | Sequence[str] | Sequence[Sequence[str]], cell: float) -> None:
        if not (math.isfinite(cell) and cell > 0):
            raise ValueError(f"the side of a cell must be a positive number, not {cell!r}")
        self.rows = parse_map(map)
        self.cell = float(cell)
        self.shape = (len(self.rows), len(self.rows[0]))
        self.walls = self._cells_with(WALL)
        self.starts = self._cells_with(START)
        self.free = self._cells_with(FREE, START, GOAL)
        self.origin = self.starts[0]
        goals = self._cells_with(GOAL)
        self.marked_goal = self.centre(goals[0]) if goals else None
        self._blocked = tuple(tuple(symbol == WALL for symbol in row) for row in self.rows)
        self._per_metre = 1.0 / self.cell

    def _cells_with(self, *symbols: str) -> tuple[Cell, ...]:
        return tuple(Cell(i, j) for i, row in enumerate(self.rows) for j, symbol in enumerate(row) if symbol in symbols)

    def centre(self, cell: Cell) -> tuple[float, float]:
        """Return the world x, y of the centre of a cell."""
        return (cell[1] - self.origin.column) * self.cell, (cell[0] - self.origin.row) * self.cell

    def wall_boxes(self) -> list[tuple[float, float, float, float]]:
        """Low x, low y, high x, high y of every wall."""
        half = self.cell / 2
        return [(x - half, y - half, x + half, y + half) for x, y in map(self.centre, self.walls)]

    def cell_at(self, x: float, y: float) -> Cell:
        """Return the cell that contains a point, which may be outside the map."""
        return Cell(
            math.floor(y * self._per_metre + self.origin.row + 0.5),
            math.floor(x * self._per_metre + self.origin.column + 0.5),
        )

    def in_wall(self, x: float, y: float) -> bool:
        """Return whether a point is inside a wall; points outside the map and NaN count as wall."""
        # Called in every step, so it avoids function calls.
        row = y * self._per_metre + self.origin.row + 0.5
        column = x * self._per_metre + self.origin.column + 0.5
        if 0.0 <= row < self.shape[0] and 0.0 <= column < self.shape[1]:
            return self._blocked[int(row)][int(column)]
        return True

    def bounds(self) -> tuple[float, float, float, float]:
        """Return low x, low y, high x, high y of the map, border walls included."""
        half = self.cell / 2
        low_x, low_y = self.centre(Cell(0, 0))
        high_x, high_y = self.centre(Cell(self.shape[0] - 1, self.shape[1] - 1))
        return low_x - half, low_y - half, high_x + half, high_y + half

    def reachable(self, start: Cell) -> frozenset[Cell]:
        """Return the free cells that are connected to `start` through sides of cells."""
        seen = {start}
        frontier = [start]
        while frontier:
            row, column = frontier.pop()
            for neighbour in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
                inside = 0 <= neighbour[0] < self.shape[0] and 0 <= neighbour[1] < self.shape[1]
                if inside and neighbour not in seen and not self._blocked[neighbour[0]][neighbour[1]]:
                    seen.add(Cell(*neighbour))
                    frontier.append(Cell(*neighbour))
        return frozenset(seen)

    def free_squares(self, side: float) -> list[tuple[int, int]]:
        """Return the squares around multiples of `side` that lie in free, reachable cells entirely: column, row.

        Square (i, j) is centred at x = i * side, y = j * side. The first start must reach it.
        """
        low_x, low_y, high_x, high_y = self.bounds()
        reachable = self.reachable(self.starts[0])
        corners = [(dx * side, dy * side) for dx in (-0.499, 0.499) for dy in (-0.499, 0.499)]
        return [
            (i, j)
            for j in range(math.floor(low_y / side), math.ceil(high_y / side) + 1)
            for i in range(math.floor(low_x / side), math.ceil(high_x / side) + 1)
            if all(self.cell_at(i * side + dx, j * side + dy) in reachable for dx, dy in corners)
        ]

    def distance_to_cell(self, x: float, y: float, cell: Cell) -> float:
        """Return the distance from a point to the nearest point of a cell."""
        centre_x, centre_y = self.centre(cell)
        half = self.cell / 2
        return math.hypot(max(abs(x - centre_x) - half, 0.0), max(abs(y - centre_y) - half, 0.0))

    def check_goal(self, goal: tuple[float, float], radius: float) -> None:
        """Raise ValueError unless a point within `radius` of the goal is reachable from every start.

        The goal itself may be in or at a wall, as that of the W-shape is.
        """
        for start in self.starts:
            if not any(self.distance_to_cell(*goal, cell) < radius for cell in self.reachable(start)):
                raise ValueError(
                    f"no way from the start at row {start.row}, column {start.column} to the goal "
                    f"({goal[0]:g}, {goal[1]:g}): no reachable free cell is within {radius:g} of it"
                )
