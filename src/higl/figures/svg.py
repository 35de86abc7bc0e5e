"""Drawings for the report page: inline SVG with classes, so that the page's style sheet decides between light and dark.

Text has the size of the page's text when a drawing is shown at its own width; phones show it slightly smaller.
Numbers go into the markup as they are; every text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from markupsafe import Markup, escape

from higl.figures import style
from higl.figures.goal_space import Frame, Projection, edge_lines, extent, path_points, points_of
from higl.figures.panels import Curve, Panel, StageTimes
from higl.run.reading import Columns
from higl.text import steps_text, tick_text

MapKind = Literal["landmarks", "paths"]

WIDE, SMALL = (660, 340), (400, 250)
"""Width and height of a chart that has a row of its own, and of one among others."""
MAP = 400
"""Longer side of a map."""
_LEFT, _RIGHT, _TOP = 52, 12, 12
# Radius of a mark on a curve.
_MARK = 4.5
# More points could not be distinguished and would only enlarge the page.
_MAX_VISITED, _MAX_ON_A_PATH = 700, 120


def two_colours(light: str) -> str:
    """Return a colour for light pages and a lighter one for dark pages, as variables of the style sheet."""
    return f"--l:{light};--d:{style.lighter(light)}"


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about `count` round numbers within a range."""
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
    """The mapping from steps and values to pixels of a chart."""

    def __init__(self, panel: Panel, width: int, height: int):
        # Two lines of text below, which phones show larger, need space in proportion to the width.
        self.left, self.right, self.top, self.bottom = _LEFT, width - _RIGHT, _TOP, height - 0.11 * width
        steps = [curve.steps[-1] for curve in panel.curves if len(curve.steps)]
        self.last = float(max(steps, default=1.0)) or 1.0
        self.low, self.high = panel.limits or _value_range(panel)

    def x(self, step: Any) -> Any:
        """Return the horizontal positions of steps."""
        return self.left + (self.right - self.left) * np.asarray(step) / self.last

    def y(self, value: Any) -> Any:
        """Return the vertical positions of values."""
        share = (np.clip(value, self.low, self.high) - self.low) / (self.high - self.low)
        return self.bottom - (self.bottom - self.top) * share

    def places(self, steps: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the positions of points: [N] and [N] to [N, 2]."""
        return np.stack([self.x(steps), self.y(values)], axis=-1)


def _value_range(panel: Panel) -> tuple[float, float]:
    """Return a range of values that holds all curves and their bands, and zero if that is near."""
    values = np.concatenate([np.concatenate([c.centre, c.low, c.high]) for c in panel.curves] + [np.zeros(0)])
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if 0 < low < 0.5 * high:
        low = 0.0
    margin = 0.05 * (high - low) or 0.5
    return low - (margin if low else 0.0), high + margin


def chart(panel: Panel, key: str, *, wide: bool) -> Markup:
    """Return a panel's curves as SVG; the page's script finds it by `key`."""
    width, height = WIDE if wide else SMALL
    axes = Axes(panel, width, height)
    parts = [_grid(axes), *(_band(axes, curve) for curve in panel.curves), *(_line(axes, c) for c in panel.curves)]
    parts += [_marks(axes, *each) for each in zip(panel.curves, panel.marks(), strict=True)]
    if panel.is_empty:
        parts.append(f'<text class="tick" x="{width / 2}" y="{height / 2}" text-anchor="middle">no data yet</text>')
    parts.append(f'<line class="cursor" x1="0" x2="0" y1="{axes.top}" y2="{axes.bottom:.1f}" visibility="hidden"/>')
    ends = "; ".join(f"{curve.label} {_last_value(curve)}" for curve in panel.curves if len(curve.steps))
    label = f"{panel.quantity} against environment steps, {panel.title}. Last values: {ends or 'none yet'}"
    return Markup(
        f'<svg class="{"chart wide" if wide else "chart"}" id="{escape(key)}" viewBox="0 0 {width} {height}" '
        f'tabindex="0" role="img" aria-label="{escape(label)}" data-left="{axes.left}" data-right="{axes.right}" '
        f'data-last="{axes.last:g}">{"".join(parts)}</svg>'
    )


def _last_value(curve: Curve) -> str:
    finite = curve.centre[np.isfinite(curve.centre)]
    return f"{finite[-1]:.3g}" if len(finite) else "unknown"


def _grid(axes: Axes) -> str:
    parts = []
    for value in nice_ticks(axes.low, axes.high):
        y = float(axes.y(value))
        parts.append(f'<line class="grid" x1="{axes.left}" x2="{axes.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        label = tick_text(value)
        parts.append(f'<text class="tick" x="{axes.left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
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


def _band(axes: Axes, curve: Curve) -> str:
    known = np.isfinite(curve.low) & np.isfinite(curve.high)
    if known.sum() < 2:
        return ""
    steps, low, high = curve.steps[known], curve.low[known], curve.high[known]
    outline = axes.places(np.concatenate([steps, steps[::-1]]), np.concatenate([high, low[::-1]]))
    return f'<polygon class="band" style="{two_colours(curve.colour)}" points="{_points(outline)}"/>'


def _line(axes: Axes, curve: Curve) -> str:
    known = np.isfinite(curve.centre)
    places = axes.places(curve.steps[known], curve.centre[known])
    if len(places) == 0:
        return ""
    complete = curve.count[known] == curve.seeds
    dash = " ".join(str(1.5 * part) for part in style.dashes(curve.variant))
    look = f'style="{two_colours(curve.colour)}" stroke-dasharray="{dash}"'
    thin = f'<polyline class="curve thin" {look} points="{_points(places)}"/>' if not complete.all() else ""
    return f'{thin}<polyline class="curve" {look} points="{_points(places[complete])}"/>'


def _marks(axes: Axes, curve: Curve, points: np.ndarray) -> str:
    """Return the marks of a curve at points [M, 2]."""
    drawn = " ".join(mark(curve, x, y) for x, y in axes.places(*points.T))
    return f'<path class="dot" style="{two_colours(curve.colour)}" d="{drawn}"/>' if drawn else ""


def mark(curve: Curve, x: float, y: float) -> str:
    """Return the path of a curve's mark."""
    corners = [(x + _MARK * right, y - _MARK * up) for right, up in curve.mark]
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in corners) + "Z"


def _points(places: np.ndarray) -> str:
    """Return positions [N, 2] as the value of a `points` attribute."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def chart_data(panel: Panel) -> list[dict[str, Any]]:
    """Return a chart's numbers for the page's script: label, steps and values of each curve."""
    series = []
    for curve in panel.curves:
        known = np.isfinite(curve.centre)
        values = [float(f"{value:.4g}") for value in curve.centre[known]]
        series.append({"label": curve.label, "steps": curve.steps[known].astype(int).tolist(), "values": values})
    return series


# --- Maps -----------------------------------------------------------------------------------------------------------


def map_svg(snapshots: Sequence[Columns], projection: Projection, kind: MapKind, label: str) -> Markup:
    """Return a map of landmarks or of evaluation paths at all moments as one SVG, which shows the last moment."""
    frame = Frame(projection, extent(snapshots, projection), MAP)
    width, height = frame.shape
    draw = _landmarks if kind == "landmarks" else _evaluation
    last = len(snapshots) - 1
    moments = "".join(
        f'<g class="moment{" on" if number == last else ""}">{draw(snapshot, frame)}</g>'
        for number, snapshot in enumerate(snapshots)
    )
    return Markup(
        f'<svg class="map" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">'
        f'<rect class="floor" width="{width}" height="{height}"/>{_walls(snapshots, frame)}{moments}</svg>'
    )


def _walls(snapshots: Sequence[Columns], frame: Frame) -> str:
    walls = next((s["walls"] for s in snapshots if len(s.get("walls", ()))), np.zeros((0, 4)))
    # Half a pixel more closes the gaps between neighbours.
    return "".join(
        f'<rect class="wall" x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0 + 0.5:.1f}" height="{y1 - y0 + 0.5:.1f}"/>'
        for x0, y0, x1, y1 in frame.boxes(walls)
    )


def _circles(kind: str, places: Iterable[np.ndarray], radius: float) -> str:
    return "".join(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>' for x, y in places)


def _squares(kind: str, places: Iterable[np.ndarray], half: float) -> str:
    side = f'width="{2 * half:g}" height="{2 * half:g}"'
    return "".join(f'<rect class="{kind}" x="{x - half:.1f}" y="{y - half:.1f}" {side}/>' for x, y in places)


def _crosses(kind: str, places: Iterable[np.ndarray]) -> str:
    return "".join(f'<path class="{kind}" d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10"/>' for x, y in places)


def star(x: float, y: float, radius: float) -> str:
    """Return the path of a five-pointed star."""
    turns = np.pi * (np.arange(10) / 5 - 0.5)
    size = np.where(np.arange(10) % 2 == 0, radius, 0.42 * radius)
    points = np.stack([x + size * np.cos(turns), y + size * np.sin(turns)], axis=1)
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) + "Z"


def _goals(snapshot: Columns, frame: Frame, name: str) -> str:
    places = np.unique(frame.places(points_of(snapshot, name)).round(1).reshape(-1, 2), axis=0)
    radius = float(snapshot.get("radius", np.nan)) * frame.scale
    reach = _circles("radius", places, round(radius, 1)) if math.isfinite(radius) and frame.projection.decides else ""
    return reach + "".join(f'<path class="goal" d="{star(x, y, 10)}"/>' for x, y in places)


def _landmarks(snapshot: Columns, frame: Frame) -> str:
    """Return visited states, goal, graph, landmarks, start and plan of a snapshot."""

    def places(name: str) -> np.ndarray:
        return frame.places(points_of(snapshot, name))

    visited = places("visited")
    visited = visited[:: max(1, math.ceil(len(visited) / _MAX_VISITED))]
    # Lines of no length with round ends are dots: one element for all of them.
    dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in visited)
    edges = "".join(_segment(a, b) for a, b in frame.places(edge_lines(snapshot)))
    triangles = (f'<path class="novelty" d="M{x:.1f} {y - 6:.1f}l5.4 9.6h-10.8Z"/>' for x, y in places("novelty"))
    return (
        f'<path class="visited" d="{dots}"/>{_goals(snapshot, frame, "goal")}<path class="edge graph" d="{edges}"/>'
        f"{_circles('coverage', places('coverage'), 4.5)}{''.join(triangles)}{_squares('state', places('state'), 5)}"
        f'<g class="graph">{_plan(snapshot, frame)}</g>'
    )


def _segment(start: np.ndarray, end: np.ndarray) -> str:
    return f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"


def _plan(snapshot: Columns, frame: Frame) -> str:
    """Return the shortest path, the selected landmark, the pseudo-landmark and the subgoal."""
    path = frame.places(path_points(snapshot))
    state, selected, pseudo, subgoal = (
        frame.places(points_of(snapshot, name)) for name in ("state", "selected", "pseudo_landmark", "subgoal")
    )
    parts = [f'<polyline class="path" points="{_points(path)}"/>'] if len(path) else []
    parts.append(_circles("selected", selected, 9))
    parts += [f'<path class="pseudo" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7Z"/>' for x, y in pseudo]
    for start, end in zip(state, subgoal, strict=False):
        parts += [f'<path class="towards" d="{_segment(start, end)}"/>', _crosses("subgoal", [end])]
    return "".join(parts)


def _evaluation(snapshot: Columns, frame: Frame) -> str:
    """Return the paths of the evaluation episodes, and the subgoals of the first."""
    parts = [
        _goals(snapshot, frame, "eval_goals" if "eval_goals" in snapshot else "goal"),
        _circles("asked", frame.places(points_of(snapshot, "subgoals")), 2.5),
    ]
    paths, success = snapshot.get("eval_paths", np.zeros((0, 0, 2))), snapshot.get("eval_success", ())
    goals = snapshot.get("eval_goals", np.full((len(paths), *paths.shape[2:]), np.nan))
    radius = float(snapshot.get("radius", np.nan))
    for path, reached, goal in zip(paths, success, goals, strict=False):
        path = path[np.isfinite(path).all(axis=1)]
        if len(path):
            shown = path[: _reached_at(path, goal, radius) + 1] if reached else path
            parts.append(_way(shown, frame, reached=bool(reached)))
    return "".join(parts)


def _way(path: np.ndarray, frame: Frame, *, reached: bool) -> str:
    """Return one episode's path [T, G] with its start and its end."""
    path = path[np.unique(np.linspace(0, len(path) - 1, min(len(path), _MAX_ON_A_PATH)).astype(int))]
    places = frame.places(path)
    end = _circles("end reached", places[-1:], 5) if reached else _crosses("end missed", places[-1:])
    line = f'<polyline class="way {"reached" if reached else "missed"}" points="{_points(places)}"/>'
    return line + _squares("state", places[:1], 4) + end


def _reached_at(path: np.ndarray, goal: np.ndarray, radius: float) -> int:
    """Return the first index of a path [T, G] within the radius of the goal; the last index if there is none.

    Of six numbers (tip and puck) only the last three count.
    """
    decides = slice(3, 6) if path.shape[1] == 6 else slice(None)
    near = np.flatnonzero(np.linalg.norm((path - goal)[:, decides], axis=1) <= radius)
    return int(near[0]) if len(near) else len(path) - 1


# --- Times ----------------------------------------------------------------------------------------------------------


def times_bar(times: StageTimes) -> Markup:
    """Return where the time went as one bar."""
    parts, x = [], 0.0
    for stage, taken in times.stages.items():
        wide = 100 * taken / times.total
        parts.append(
            f'<rect x="{x:.2f}%" y="0" width="{wide:.2f}%" height="22" fill="{style.stage_colour(stage)}">'
            f"<title>{escape(stage)}: {taken:.2f} ms per step, {wide:.0f}%</title></rect>"
        )
        x += wide
    return Markup(f'<svg class="bar" role="img" aria-label="time of each stage" height="22">{"".join(parts)}</svg>')
