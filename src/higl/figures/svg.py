"""Drawings for the report page: inline SVG with classes, so that the page's style decides light or dark.

Text has the size of the page's when a drawing is shown as wide as it is drawn; phones show it a little smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from higl.figures import style
from higl.figures.curves import OTHER, Curve, Panel, StageTimes
from higl.figures.maps import Projection, edge_lines, extent, path_points, points_of
from higl.figures.style import lighter
from higl.run.reading import Columns
from higl.text import steps_text

WIDE, SMALL = (660, 340), (400, 250)
"""Width and height of a chart that has a row of its own, and of one among others."""
_LEFT, _RIGHT, _TOP = 52, 12, 12
MAP = 400
# Points of a drawing: more cannot be told apart, and the page would grow.
_MOST_VISITED, _MOST_ON_A_PATH = 700, 120


def two_colours(light: str) -> str:
    """Return a colour for light pages and its lighter twin for dark ones, as the page's style reads them."""
    return f"--l:{light};--d:{lighter(light)}"


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers within a range, about `count` of them."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    rough = (high - low) / count
    size = 10.0 ** math.floor(math.log10(rough))
    step = min((factor * size for factor in (1, 2, 2.5, 5, 10)), key=lambda step: abs(step - rough))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


# --- Curves ---------------------------------------------------------------------------------------------------------


class Axes:
    """The mapping from steps and values to places in a chart."""

    def __init__(self, panel: Panel, width: int, height: int):
        # Room below for two lines of text, which phones show larger.
        self.left, self.right, self.top, self.bottom = _LEFT, width - _RIGHT, _TOP, height - 0.11 * width
        steps = [curve.steps[-1] for curve in panel.curves if len(curve.steps)]
        self.last = float(max(steps, default=1.0)) or 1.0
        self.low, self.high = panel.limits or _range(panel)

    def x(self, step: Any) -> Any:
        """Return the places of steps."""
        return self.left + (self.right - self.left) * np.asarray(step) / self.last

    def y(self, value: Any) -> Any:
        """Return the places of values."""
        share = (np.clip(value, self.low, self.high) - self.low) / (self.high - self.low)
        return self.bottom - (self.bottom - self.top) * share


def _range(panel: Panel) -> tuple[float, float]:
    """Return a range of values that holds all curves and most of their bands."""
    values = np.concatenate([np.concatenate([c.centre, c.low, c.high]) for c in panel.curves] + [np.zeros(0)])
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if low > 0 and low < 0.5 * high:
        low = 0.0
    margin = 0.05 * (high - low) or 0.5
    return low - (margin if low else 0.0), high + margin


def chart(panel: Panel, key: str, *, wide: bool) -> str:
    """Return a panel's curves as SVG; `key` names it for the page's script."""
    width, height = WIDE if wide else SMALL
    axes = Axes(panel, width, height)
    parts = [_grid(axes)]
    parts += [_band(axes, curve) for curve in panel.curves]
    parts += [_line(axes, curve) for curve in panel.curves]
    if not any(len(curve.steps) for curve in panel.curves):
        parts.append(f'<text class="tick" x="{width / 2}" y="{height / 2}" text-anchor="middle">nothing yet</text>')
    parts.append(f'<line class="cursor" x1="0" x2="0" y1="{axes.top}" y2="{axes.bottom:.1f}" visibility="hidden"/>')
    summary = "; ".join(f"{curve.label} {_last(curve)}" for curve in panel.curves if len(curve.steps))
    label = escape(f"{panel.quantity} against steps, {panel.title}. At the end: {summary or 'nothing yet'}", quote=True)
    shape = "chart wide" if wide else "chart"
    return (
        f'<svg class="{shape}" id="{key}" viewBox="0 0 {width} {height}" tabindex="0" role="img" '
        f'aria-label="{label}" data-left="{axes.left}" data-right="{axes.right}" data-last="{axes.last:g}">'
        f"{''.join(parts)}</svg>"
    )


def _last(curve: Curve) -> str:
    finite = curve.centre[np.isfinite(curve.centre)]
    return f"{finite[-1]:.3g}" if len(finite) else "unknown"


def _grid(axes: Axes) -> str:
    parts = []
    for value in nice_ticks(axes.low, axes.high):
        y = float(axes.y(value))
        parts.append(f'<line class="grid" x1="{axes.left}" x2="{axes.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{axes.left - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(value)}</text>')
    for step in nice_ticks(0.0, axes.last):
        x = float(axes.x(step))
        anchor = "end" if x > axes.right - 12 else "middle"
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{axes.bottom:.1f}" dy="1.25em" text-anchor="{anchor}">'
            f"{steps_text(step)}</text>"
        )
    line = f'x1="{axes.left}" x2="{axes.right}" y1="{axes.bottom:.1f}" y2="{axes.bottom:.1f}"'
    middle = (axes.left + axes.right) / 2
    return "".join(parts) + (
        f'<line class="axis" {line}/><text class="tick" x="{middle}" y="{axes.bottom:.1f}" dy="2.5em" '
        'text-anchor="middle">environment steps</text>'
    )


def _tick(value: float) -> str:
    """Return a short number: 0.25, 1.5e-4."""
    if value == 0 or abs(value) >= 1e-2:
        return f"{value:.4g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def _band(axes: Axes, curve: Curve) -> str:
    known = np.isfinite(curve.low) & np.isfinite(curve.high)
    if known.sum() < 2:
        return ""
    steps, low, high = curve.steps[known], curve.low[known], curve.high[known]
    points = [*zip(steps, high, strict=True), *zip(steps[::-1], low[::-1], strict=True)]
    places = " ".join(f"{float(axes.x(step)):.1f},{float(axes.y(value)):.1f}" for step, value in points)
    return f'<polygon class="band" style="{two_colours(curve.colour)}" points="{places}"/>'


def _line(axes: Axes, curve: Curve) -> str:
    known = np.isfinite(curve.centre)
    points = np.stack([axes.x(curve.steps[known]), axes.y(curve.centre[known])], axis=-1)
    if len(points) == 0:
        return ""
    complete = curve.count[known] == curve.seeds
    dash = " ".join(str(1.5 * part) for part in style.dashes(curve.variant))
    look = f'style="{two_colours(curve.colour)}" stroke-dasharray="{dash}"'
    thin = f'<polyline class="curve thin" {look} points="{_places(points)}"/>' if not complete.all() else ""
    dot = ""
    if len(points) == 1:
        dot = f'<circle class="dot" {look} cx="{points[0, 0]:.1f}" cy="{points[0, 1]:.1f}" r="3"/>'
    return f'{thin}<polyline class="curve" {look} points="{_places(points[complete])}"/>{dot}'


def _places(points: np.ndarray) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def chart_data(panel: Panel) -> list[dict[str, Any]]:
    """Return a chart's numbers for the page's script: label, steps and values of each curve."""
    series = []
    for curve in panel.curves:
        known = np.isfinite(curve.centre)
        values = [float(f"{value:.4g}") for value in curve.centre[known]]
        series.append({"label": curve.label, "steps": curve.steps[known].astype(int).tolist(), "values": values})
    return series


# --- Maps -----------------------------------------------------------------------------------------------------------


class Frame:
    """The mapping from goal-space points to places in a map."""

    def __init__(self, snapshots: Sequence[Columns], projection: Projection):
        self.projection = projection
        self.left, self.right, self.low, self.high = extent(snapshots, projection)
        self.scale = MAP / max(self.right - self.left, self.high - self.low)
        self.width = round((self.right - self.left) * self.scale)
        self.height = round((self.high - self.low) * self.scale)

    def places(self, points: np.ndarray) -> np.ndarray:
        """Return places of points: [..., G] to [..., 2]."""
        x, y = np.moveaxis(self.projection.of(np.asarray(points, float)), -1, 0)
        return np.stack([(x - self.left) * self.scale, (self.high - y) * self.scale], axis=-1)


def map_svg(snapshots: Sequence[Columns], projection: Projection, kind: str, label: str) -> str:
    """Return all moments of a map in one SVG, the last one shown. `kind`: "landmarks" or "paths"."""
    frame = Frame(snapshots, projection)
    draw = _landmarks if kind == "landmarks" else _evaluation
    last = len(snapshots) - 1
    moments = "".join(
        f'<g class="moment{" on" if number == last else ""}">{draw(snapshot, frame)}</g>'
        for number, snapshot in enumerate(snapshots)
    )
    return (
        f'<svg class="map" viewBox="0 0 {frame.width} {frame.height}" role="img" '
        f'aria-label="{escape(label, quote=True)}">'
        f'<rect class="floor" width="{frame.width}" height="{frame.height}"/>{_walls(snapshots, frame)}'
        f"{moments}</svg>"
    )


def _walls(snapshots: Sequence[Columns], frame: Frame) -> str:
    walls = next((s["walls"] for s in snapshots if len(s.get("walls", ()))), np.zeros((0, 4)))
    boxes = []
    for x0, y0, x1, y1 in walls:
        x, y = (x0 - frame.left) * frame.scale, (frame.high - y1) * frame.scale
        wide, tall = (x1 - x0) * frame.scale + 0.5, (y1 - y0) * frame.scale + 0.5
        boxes.append(f'<rect class="wall" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"/>')
    return "".join(boxes)


def _goal(snapshot: Columns, frame: Frame, name: str = "goal") -> str:
    radius = float(snapshot.get("radius", np.nan)) * frame.scale
    marks = []
    for x, y in np.unique(frame.places(points_of(snapshot, name)).round(1).reshape(-1, 2), axis=0):
        if math.isfinite(radius) and frame.projection.decides:
            marks.append(f'<circle class="radius" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>')
        marks.append(f'<path class="goal" d="{_star(x, y, 10)}"/>')
    return "".join(marks)


def _star(x: float, y: float, radius: float) -> str:
    turns = np.pi * (np.arange(10) / 5 - 0.5)
    size = np.where(np.arange(10) % 2 == 0, radius, 0.42 * radius)
    points = np.stack([x + size * np.cos(turns), y + size * np.sin(turns)], axis=1)
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) + "Z"


def _landmarks(snapshot: Columns, frame: Frame) -> str:
    """Return visited states, graph, landmarks, goal, state and plan of a snapshot."""
    visited = points_of(snapshot, "visited")
    visited = visited[:: max(1, math.ceil(len(visited) / _MOST_VISITED))]
    # Dots as the round ends of lines of no length: one element for all of them.
    dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in frame.places(visited))
    parts = [f'<path class="visited" d="{dots}"/>', _goal(snapshot, frame)]
    lines = "".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b in frame.places(edge_lines(snapshot)))
    parts.append(f'<path class="edge graph" d="{lines}"/>')
    for x, y in frame.places(points_of(snapshot, "coverage")):
        parts.append(f'<circle class="coverage" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
    for x, y in frame.places(points_of(snapshot, "novelty")):
        parts.append(f'<path class="novelty" d="M{x:.1f} {y - 6:.1f}l5.4 9.6h-10.8Z"/>')
    for x, y in frame.places(points_of(snapshot, "state")):
        parts.append(f'<rect class="state" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"/>')
    return "".join(parts) + f'<g class="graph">{_plan(snapshot, frame)}</g>'


def _plan(snapshot: Columns, frame: Frame) -> str:
    """Return the shortest path, the selected landmark, the pseudo-landmark and the subgoal."""
    path = frame.places(path_points(snapshot))
    parts = [f'<polyline class="path" points="{_places(path)}"/>'] if len(path) else []
    for x, y in frame.places(points_of(snapshot, "selected")):
        parts.append(f'<circle class="selected" cx="{x:.1f}" cy="{y:.1f}" r="9"/>')
    for x, y in frame.places(points_of(snapshot, "pseudo_landmark")):
        parts.append(f'<path class="pseudo" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7Z"/>')
    state, subgoal = (frame.places(points_of(snapshot, name)) for name in ("state", "subgoal"))
    for (x0, y0), (x1, y1) in zip(state, subgoal, strict=False):
        parts.append(f'<path class="towards" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>')
        parts.append(f'<path class="subgoal" d="M{x1 - 5:.1f} {y1 - 5:.1f}l10 10m0 -10l-10 10"/>')
    return "".join(parts)


def _evaluation(snapshot: Columns, frame: Frame) -> str:
    """Return the ways of the evaluation's episodes, and the points that the high level asked for in the first."""
    parts = [_goal(snapshot, frame, "eval_goals" if "eval_goals" in snapshot else "goal")]
    for x, y in frame.places(points_of(snapshot, "subgoals")):
        parts.append(f'<circle class="asked" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>')
    paths, success = snapshot.get("eval_paths", np.zeros((0, 0, 2))), snapshot.get("eval_success", ())
    goals = snapshot.get("eval_goals", np.full((len(paths), *paths.shape[2:]), np.nan))
    for path, reached, goal in zip(paths, success, goals, strict=False):
        path = path[np.isfinite(path).all(axis=1)]
        if len(path) == 0:
            continue
        path = path[: _reached_at(path, goal, float(snapshot.get("radius", np.nan))) + 1] if reached else path
        path = path[np.unique(np.linspace(0, len(path) - 1, min(len(path), _MOST_ON_A_PATH)).astype(int))]
        places = frame.places(path)
        (x0, y0), (x1, y1) = places[0], places[-1]
        kind = "reached" if reached else "missed"
        parts.append(f'<polyline class="way {kind}" points="{_places(places)}"/>')
        parts.append(f'<rect class="state" x="{x0 - 4:.1f}" y="{y0 - 4:.1f}" width="8" height="8"/>')
        if reached:
            parts.append(f'<circle class="end reached" cx="{x1:.1f}" cy="{y1:.1f}" r="5"/>')
        else:
            parts.append(f'<path class="end missed" d="M{x1 - 5:.1f} {y1 - 5:.1f}l10 10m0 -10l-10 10"/>')
    return "".join(parts)


def _reached_at(path: np.ndarray, goal: np.ndarray, radius: float) -> int:
    """Return the first place on a path [T, G] within the radius of the goal; its last if there is none.

    Of six numbers (tip and puck) only the last three decide.
    """
    decides = slice(3, 6) if path.shape[1] == 6 else slice(None)
    near = np.flatnonzero(np.linalg.norm((path - goal)[:, decides], axis=1) <= radius)
    return int(near[0]) if len(near) else len(path) - 1


# --- Times ----------------------------------------------------------------------------------------------------------


def times_bar(times: StageTimes) -> str:
    """Return where the time went as one bar."""
    parts, x = [], 0.0
    total = sum(times.milliseconds.values()) + times.other
    for stage, taken in [*times.milliseconds.items(), (OTHER, times.other)]:
        wide = 100 * taken / total if total else 0.0
        colour = style.STAGE_COLOURS.get(stage, style.OTHER_STAGE)
        parts.append(
            f'<rect x="{x:.2f}%" y="0" width="{wide:.2f}%" height="22" fill="{colour}">'
            f"<title>{escape(stage)}: {taken:.2f} ms a step, {wide:.0f}%</title></rect>"
        )
        x += wide
    return f'<svg class="bar" role="img" aria-label="time of each stage" height="22">{"".join(parts)}</svg>'
