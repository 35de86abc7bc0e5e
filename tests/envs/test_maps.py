"""Maps and their geometry."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from higl.envs import TASKS
from higl.envs.maps import GOAL, START, U_SHAPE, W_SHAPE, WALL, Cell, Maze, parse_map

MAZES = [task for task in TASKS if task.map is not None]


def maze_of(task):
    return Maze(task.map, task.cell)


def test_u_shape():
    assert U_SHAPE == ("#####", "#S..#", "###.#", "#...#", "#####")


def test_w_shape():
    inner = [row[1:-1] for row in W_SHAPE[1:-1]]
    free = ["".join("#" if symbol == WALL else "." for symbol in row) for row in inner]
    assert free == ["." * 8] * 2 + ["######.."] + ["." * 8] * 2 + ["######.."] + ["." * 8] * 2
    assert [len(row) for row in W_SHAPE] == [10] * 10
    assert set(W_SHAPE[0] + W_SHAPE[-1] + "".join(row[0] + row[-1] for row in W_SHAPE)) == {WALL}
    not_starts = [
        (i, j) for i, row in enumerate(W_SHAPE) for j, symbol in enumerate(row) if symbol not in (WALL, START)
    ]
    assert not_starts == [(4, 1), (5, 1)]


@pytest.mark.parametrize("task", MAZES, ids=lambda task: task.name)
def test_origin_is_the_first_start_cell(task):
    maze = maze_of(task)
    assert maze.centre(maze.starts[0]) == (0.0, 0.0)
    assert maze.starts[0] == Cell(1, 1)


@pytest.mark.parametrize(("name", "inner"), [("ant-maze-u", 12), ("ant-maze-u-large", 24), ("ant-maze-w", 16)])
def test_size(name, inner):
    task = next(task for task in TASKS if task.name == name)
    low_x, low_y, high_x, high_y = maze_of(task).bounds()
    assert high_x - low_x == high_y - low_y == inner + 2 * task.cell
    assert low_x == low_y == -1.5 * task.cell


@pytest.mark.parametrize("task", MAZES, ids=lambda task: task.name)
def test_every_point_of_a_cell_matches_its_symbol(task):
    maze = maze_of(task)
    for i, row in enumerate(maze.rows):
        for j, symbol in enumerate(row):
            x, y = maze.centre(Cell(i, j))
            for dx in np.linspace(-0.499, 0.499, 7) * maze.cell:
                for dy in np.linspace(-0.499, 0.499, 7) * maze.cell:
                    assert maze.in_wall(x + dx, y + dy) == (symbol == WALL)
                    assert maze.cell_at(x + dx, y + dy) == (i, j)


def test_points_outside_the_map_and_nan_count_as_wall():
    maze = Maze(U_SHAPE, 4.0)
    for far in (-1e9, -6.5, 14.5, 1e9, math.inf, -math.inf, math.nan):
        assert maze.in_wall(far, 0.0)
        assert maze.in_wall(0.0, far)


BAD_MAPS = [
    ([], "empty"),
    ("", "empty"),
    (["#..#"], "no start"),
    (["S..", "#.x"], r"'x' at row 1, column 2"),
    ([["S", "."], [".", 0]], r"0 at row 1, column 1"),
    (["S..", "#."], r"row 1 has 2 cells but row 0 has 3"),
    (["SGG"], "2 goals"),
]


@pytest.mark.parametrize(("rows", "message"), BAD_MAPS)
def test_errors_in_maps_are_located(rows, message):
    with pytest.raises(ValueError, match=message):
        parse_map(rows)


@pytest.mark.parametrize("cell", [0.0, -1.0, math.nan, math.inf])
def test_bad_cell(cell):
    with pytest.raises(ValueError, match="side of a cell"):
        Maze(U_SHAPE, cell)


def test_open_edge_gets_walls_and_text_is_read_by_lines():
    assert parse_map("S G\n") == ("#####", "#S.G#", "#####")
    assert parse_map(U_SHAPE) == U_SHAPE


def test_goal_behind_a_wall_is_rejected():
    maze = Maze(["S.#.G"], 2.0)
    with pytest.raises(ValueError, match=r"no way from the start at row 1, column 1 to the goal \(8, 0\)"):
        maze.check_goal((8.0, 0.0), 1.25)
    maze.check_goal((2.0, 0.0), 1.25)


def test_goal_in_a_wall_is_allowed_near_reachable_floor():
    maze = Maze(W_SHAPE, 2.0)
    assert maze.in_wall(2.0, 9.0)
    maze.check_goal((2.0, 9.0), 1.0)
    with pytest.raises(ValueError, match="no way"):
        maze.check_goal((2.0, 10.0), 0.5)


def maps(max_side=7):
    sides = st.tuples(st.integers(1, max_side), st.integers(1, max_side))
    return sides.flatmap(
        lambda shape: st.lists(
            st.text(alphabet="#..S", min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
        )
    )


@given(rows=maps(), cell=st.floats(0.1, 20.0), where=st.tuples(st.floats(0.001, 0.999), st.floats(0.001, 0.999)))
def test_any_map_with_a_start_is_a_closed_maze(rows, cell, where):
    if START not in "".join(rows):
        with pytest.raises(ValueError, match="no start"):
            Maze(rows, cell)
        return
    maze = Maze(rows, cell)
    assert maze.centre(maze.origin) == (0.0, 0.0)
    edge = maze.rows[0] + maze.rows[-1] + "".join(row[0] + row[-1] for row in maze.rows)
    assert set(edge) == {WALL}
    assert len(maze.walls) + len(maze.free) == maze.shape[0] * maze.shape[1]
    assert set(maze.starts) <= set(maze.free)
    for i in range(maze.shape[0]):
        for j in range(maze.shape[1]):
            x, y = maze.centre(Cell(i, j))
            x, y = x + (where[0] - 0.5) * cell, y + (where[1] - 0.5) * cell
            assert maze.cell_at(x, y) == (i, j)
            assert maze.in_wall(x, y) == (maze.rows[i][j] == WALL)
            assert maze.distance_to_cell(x, y, Cell(i, j)) == pytest.approx(0.0, abs=1e-9 * cell)


@given(rows=maps())
def test_reachable_is_symmetric_and_free(rows):
    rows = ["S" + row[1:] if index == 0 else row for index, row in enumerate(rows)]
    maze = Maze(rows, 1.0)
    reached = maze.reachable(maze.origin)
    assert reached <= set(maze.free)
    assert all(maze.reachable(cell) == reached for cell in list(reached)[:3])
    for row, column in reached:
        for neighbour in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            assert maze.rows[neighbour[0]][neighbour[1]] == WALL or neighbour in reached


@given(rows=maps(5), goal=st.tuples(st.integers(0, 4), st.integers(0, 4)))
def test_check_goal_agrees_with_a_walk(rows, goal):
    rows = [row.replace(START, ".") for row in rows]
    rows[0] = START + rows[0][1:]
    if goal[0] >= len(rows) or goal[1] >= len(rows[0]) or rows[goal[0]][goal[1]] == WALL or goal == (0, 0):
        return
    row = rows[goal[0]]
    rows[goal[0]] = row[: goal[1]] + GOAL + row[goal[1] + 1 :]
    maze = Maze(rows, 1.0)
    assert maze.marked_goal is not None
    goal_cell = maze.cell_at(*maze.marked_goal)
    assert maze.rows[goal_cell.row][goal_cell.column] == GOAL
    if goal_cell in maze.reachable(maze.origin):
        maze.check_goal(maze.marked_goal, 0.3)
    else:
        with pytest.raises(ValueError, match="no way"):
            maze.check_goal(maze.marked_goal, 0.3)
