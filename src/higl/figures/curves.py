"""Pictures of learning curves and of where the time went, drawn with Matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from higl.figures.panels import (
    EXPLORED,
    LOSSES,
    PROGRESS,
    UNMEASURED,
    Panel,
    Reference,
    evaluation_panels,
    metric_panels,
    stage_times,
)
from higl.figures.style import EMPTY, dashes, stage_colour
from higl.run.reading import Run
from higl.text import steps_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Show = Literal["success", "return", "explored", "progress", "losses"]

# Characters of the longest label that a legend inside the axes has room for.
_SHORT_LABEL = 34
# Characters of a line above the axes.
_TITLE_WIDTH = 48
# Above this success rate the text of a published result stands below its line.
_HIGH = 0.85
# Long enough handles to show dashes beside a mark.
_LEGEND: Any = {"fontsize": "small", "frameon": False, "handlelength": 4.0}


def draw_curves(panels: Sequence[Panel], title: str | None = None) -> Figure:
    """Draw panels in a grid, at most three in a row."""
    from matplotlib.figure import Figure

    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(max(4.6 * columns, 6.4), 3.5 * rows + 0.5), layout="constrained")
    for axes, panel in zip(figure.subplots(rows, columns, squeeze=False).ravel(), panels, strict=False):
        draw_panel(axes, panel)
    for axes in figure.axes[len(panels) :]:
        axes.remove()
    _add_legends(figure)
    if title:
        figure.suptitle(title, fontsize="medium", fontweight="bold")
    notes = list(dict.fromkeys(panel.note for panel in panels))
    curves = [curve for panel in panels for curve in panel.curves]
    if any((np.isfinite(curve.centre) & (curve.count < curve.seeds)).any() for curve in curves):
        notes.append("thin lines: steps that not every seed has reached")
    figure.supxlabel("\n".join(notes), fontsize="x-small", color="#555555")
    return figure


def _add_legends(figure: Figure) -> None:
    """Put short legends inside the axes, and long ones above all axes, each entry once."""
    for axes in figure.axes:
        _, labels = axes.get_legend_handles_labels()
        if labels and max(map(len, labels)) <= _SHORT_LABEL:
            axes.legend(**_LEGEND)
    found = {}
    for axes in figure.axes:
        if axes.get_legend() is None:
            found |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if found:
        width = int(13 * figure.get_figwidth())
        labels = [textwrap.fill(label, width) for label in found]
        figure.legend(found.values(), labels, loc="outside upper left", **_LEGEND)


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw a panel's curves: thick where every seed of a group has a value, thin where only some have."""
    for curve, points in zip(panel.curves, panel.marks(), strict=True):
        dash = dashes(curve.variant)
        look: Any = {"color": curve.colour, "ls": (0, dash) if dash else "-"}
        mark: Any = {"marker": curve.mark, "ms": 6.5, "mec": "white", "mew": 0.7}
        whole = np.where(curve.count == curve.seeds, curve.centre, np.nan)
        axes.plot(curve.steps, curve.centre, lw=0.8, alpha=0.7, **look)
        axes.plot(curve.steps, whole, lw=1.9, gid=curve.label, **look)
        # Marks above the lines of all curves, and an empty curve for the legend.
        if len(points):  # without one, it would count as a point at the corner of the figure in the layout
            axes.plot(*points.T, color=curve.colour, ls="", zorder=3, clip_on=False, **mark)
        axes.plot([], [], lw=1.9, label=curve.label, **look, **(mark if len(points) else {}))
        low, high = (edge if panel.limits is None else np.clip(edge, *panel.limits) for edge in (curve.low, curve.high))
        axes.fill_between(curve.steps, low, high, color=curve.colour, alpha=0.18, lw=0)
    for reference in panel.references:
        _draw_reference(axes, reference)
    axes.set(xlabel="environment steps", ylabel=panel.quantity)
    axes.set_title(textwrap.fill(panel.title, _TITLE_WIDTH, break_on_hyphens=False), fontsize="medium")
    axes.xaxis.set_major_formatter(lambda value, _: steps_text(value))
    axes.grid(alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(left=0)
    if panel.limits is not None:
        low, high = panel.limits
        axes.set_ylim(low - 0.02 * (high - low), high + 0.04 * (high - low))
    if panel.is_empty:
        axes.set_facecolor(EMPTY)
        axes.grid(visible=False)
        axes.text(0.5, 0.5, "no data yet", transform=axes.transAxes, ha="center", color="#666666")


def _draw_reference(axes: Axes, reference: Reference) -> None:
    """Draw a published result: a dotted line, and its text above the line or, near the top, below it."""
    from matplotlib.patheffects import withStroke

    axes.axhline(reference.value, color=reference.colour, ls=(0, (1, 2)), lw=1.2, zorder=1.5)
    offset, va = (-0.03, "top") if reference.value > _HIGH else (0.01, "bottom")
    outline = [withStroke(linewidth=2, foreground="white")]
    look: Any = {"fontsize": "small", "color": reference.colour, "path_effects": outline, "zorder": 4}
    place: Any = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": va}
    axes.text(0.99, reference.value + offset, reference.text, **look, **place)


def draw_times(runs: Sequence[Run]) -> Figure | None:
    """Draw where the time went, one bar for each run; None if no run has measured it."""
    from matplotlib.figure import Figure

    rows = [times for times in map(stage_times, runs) if times is not None]
    if not rows:
        return None
    figure = Figure(figsize=(7.5, 0.55 * len(rows) + 1.6), layout="constrained")
    axes = figure.add_subplot()
    stages = list(dict.fromkeys(stage for times in rows for stage in times.stages if stage != UNMEASURED))
    lefts = np.zeros(len(rows))
    for stage in [*stages, UNMEASURED]:
        widths = np.array([times.stages.get(stage, 0.0) for times in rows])
        axes.barh(range(len(rows)), widths, left=lefts, color=stage_colour(stage), label=stage, height=0.6)
        lefts += widths
    for place, total in enumerate(lefts):
        axes.text(total, place, f"  {total:.1f} ms", va="center", fontsize="small")
    axes.set_yticks(range(len(rows)), [times.label for times in rows], fontsize="small")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * lefts.max())
    axes.set_xlabel("milliseconds per environment step")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(stages) + 1, fontsize="small", frameon=False)
    return figure


def make_curves(
    runs: Sequence[Run], show: Sequence[Show], metrics: Sequence[str] = (), title: str = "", **options: Any
) -> Figure | None:
    """Draw curves of several kinds, and of other metrics by name; None if there is nothing to draw.

    The options are those of `evaluation_panels`.
    """
    spread = options.get("spread", "std")
    panels: list[Panel] = []
    for kind in show:
        if kind in ("success", "return"):
            panels += evaluation_panels(runs, kind, **options)
        else:
            panels += metric_panels(runs, {"explored": EXPLORED, "progress": PROGRESS, "losses": LOSSES}[kind], spread)
    panels += metric_panels(runs, {name: name for name in metrics}, spread)
    return draw_curves(panels, title) if panels else None


def save(figure: Figure, path: Path, note: str | None = None) -> None:
    """Write a figure as png, svg or pdf; the same data give the same file. A png keeps the note, if there is one."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    more = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Description": note} if note else None}
    with matplotlib.rc_context({"svg.hashsalt": "higl", "svg.fonttype": "none"}):
        figure.savefig(path, dpi=160, metadata=more.get(path.suffix[1:].lower()))
