"""Figures of several panels at the width of a page: one legend or one in each panel, and panels that wait for runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from higl.figures.curves import draw_panel
from higl.figures.panels import Panel
from higl.text import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A page shows a picture at 800 to 1,000 pixels: at this width in inches, text stays readable there.
_WIDTH, _HEIGHT, _COLUMNS = 9.2, 2.35, 3
_FONT = 8.5
_QUIET = "#555555"


def draw_comparison(panels: Sequence[Panel], *, shared_legend: bool) -> Figure:
    """Draw panels with the same range of success, three in a row; a panel without curves says that it waits for runs.

    Args:
        panels: the panels, row by row.
        shared_legend: whether a name means the same in every panel: one legend above all; else one in each panel.
    """
    import matplotlib
    from matplotlib.figure import Figure

    rows, columns = math.ceil(len(panels) / _COLUMNS), min(len(panels), _COLUMNS)
    with matplotlib.rc_context({"font.size": _FONT, "lines.markersize": 5}):
        figure = Figure(figsize=(_WIDTH * columns / _COLUMNS, _HEIGHT * rows + 0.7), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for place, (axes, panel) in enumerate(zip(grid.ravel(), panels, strict=False)):
            _draw(axes, panel, legend=not shared_legend)
            axes.set_xlabel("environment steps" if place + columns >= len(panels) else "")
            axes.set_ylabel(panel.quantity if place % columns == 0 else "")
        for axes in grid.ravel()[len(panels) :]:
            axes.remove()
        if shared_legend:
            _add_legend(figure)
        notes = dict.fromkeys(panel.note for panel in panels if not panel.is_empty)
        lines = [
            *notes,
            *(["dotted: published results, after the steps named"] if any(p.references for p in panels) else []),
        ]
        figure.supxlabel("\n".join(lines), fontsize="small", color=_QUIET)
    return figure


def _draw(axes: Axes, panel: Panel, *, legend: bool) -> None:
    draw_panel(axes, panel)
    axes.set_title("")
    axes.set_title(panel.title, fontsize="medium", fontweight="bold", loc="left")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    if panel.is_empty:
        axes.set_xticks([])
        return
    axes.locator_params(axis="x", nbins=5)
    axes.set_title(_seeds(panel), fontsize="small", color=_QUIET, loc="right")
    missing = [f"{name}: no runs yet" for name in panel.missing]
    if legend:
        for text in missing:
            axes.plot([], [], ls="", label=text)
        axes.legend(fontsize="small", frameon=False, handlelength=3.2, loc="best")
    elif missing:
        place: Any = {"transform": axes.transAxes, "ha": "right", "va": "center"}
        axes.text(0.98, 0.5, "\n".join(missing), fontsize="small", color=_QUIET, **place)


def _seeds(panel: Panel) -> str:
    """Return the numbers of seeds, in the order of the curves: '4 seeds' or '4, 2 seeds'."""
    counts = [curve.seeds for curve in panel.curves]
    if len(set(counts)) == 1:
        return counted(counts[0], "seed")
    return f"{', '.join(map(str, counts))} seeds"


def _add_legend(figure: Figure) -> None:
    """Put each name once above all panels."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        found |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if found:
        options: Any = {"loc": "outside upper center", "ncols": len(found), "frameon": False, "handlelength": 3.2}
        figure.legend(found.values(), found.keys(), **options)
