"""`higl plot`: learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from higl.commands.arguments import Argument, Out, Runs, Switch
from higl.commands.command import PICTURES, check_suffix, command, warn
from higl.errors import SettingsError
from higl.text import counted, did_you_mean

if TYPE_CHECKING:
    from higl.run.reading import Run


@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """Draw learning curves: mean and spread over seeds, one colour per algorithm, one panel per task."""

    runs: Runs
    """Run folders, or folders that contain runs."""
    out: Out = Path("plot.png")
    """File to write: png, svg or pdf."""
    show: tuple[Literal["success", "return", "explored", "progress", "losses", "times"], ...] = ("success",)
    """Curves to draw: success or return of the evaluations, how much has been visited (explored), progress of the low
    level per segment, losses. `times` is a figure of its own."""
    metrics: Annotated[tuple[str, ...], Argument(metavar="NAME", default="")] = ()
    """Other metrics to draw, by their names in metrics.jsonl."""
    smooth: Annotated[int | None, Argument(metavar="STEPS", default="five evaluations")] = None
    """Steps over which evaluation curves are averaged; 0: no average."""
    spread: Literal["std", "sem", "range", "none"] = "std"
    """What the bands show: standard deviation, standard error, range, or nothing."""
    iqm: Switch = False
    """Draw the interquartile mean with 95% stratified bootstrap intervals in place of mean and spread."""
    title: Annotated[str, Argument(default="")] = ""
    """Title of the figure."""


@command("plot", PlotOptions)
def plot(options: PlotOptions) -> int:
    """Draw learning curves."""
    check_suffix(options.out, PICTURES)
    if options.smooth is not None and options.smooth < 0:
        raise SettingsError(f"--smooth {options.smooth}: expected a number of steps, 0 for none")
    if "times" in options.show and options.show != ("times",):
        raise SettingsError("--show times is a figure of its own: give it alone")
    from higl.figures.curves import save
    from higl.figures.groups import repeated_seeds
    from higl.run.reading import find_runs, notices_of

    runs = find_runs(options.runs)
    _check_metrics(options.metrics, runs)
    warn([*notices_of(runs), *repeated_seeds(runs)])
    figure = _draw(options, runs)
    if figure is None:
        raise SettingsError("these runs have no data for the requested curves yet")
    save(figure, options.out)
    print(f"{options.out}: {counted(len(runs), 'run')}")
    return 0


def _check_metrics(names: Sequence[str], runs: Sequence[Run]) -> None:
    known = sorted({name for run in runs for name in run.metrics} - {"step", "episode", "time"})
    for name in names:
        if known and name not in known:
            raise SettingsError(f"--metrics {name}: none of these runs has measured it{did_you_mean(name, known)}")


def _draw(options: PlotOptions, runs: Sequence[Run]) -> Any:
    from higl.figures.curves import draw_times, make_curves
    from higl.figures.statistics import Smoothing

    if options.show == ("times",):
        return draw_times(runs)
    return make_curves(
        runs,
        cast(Any, options.show),
        options.metrics,
        options.title,
        smoothing=None if options.smooth is None else Smoothing(options.smooth),
        spread=options.spread,
        iqm=options.iqm,
    )
