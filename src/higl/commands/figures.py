"""`higl plot`, `higl landmarks`, `higl render`, `higl report`, `higl watch`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast

import tyro

from higl.commands.arguments import (
    PICTURES,
    Out,
    Run,
    Runs,
    Switch,
    asks_for_help,
    check_suffix,
    make_options,
    one_line_errors,
    show_help,
)
from higl.errors import SettingsError
from higl.pretrained import pretrained_run
from higl.settings.layers import nearest, parse_flags, setting_types

if TYPE_CHECKING:
    from higl.run import reading

Options = TypeVar("Options")


@dataclass(frozen=True, kw_only=True)
class PlotOptions:
    """Draw learning curves: mean and spread over seeds, one colour for each algorithm, one panel for each task."""

    runs: Runs
    """Run folders, or folders with runs in them."""
    out: Out = Path("plot.png")
    """File to write: png, svg or pdf."""
    show: tuple[Literal["success", "return", "progress", "losses", "times"], ...] = ("success",)
    """What to draw: evaluations (success, return), the low level's progress per segment, losses; or, alone, times."""
    metrics: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help_behavior_hint="")] = ()
    """Other measurements of metrics.jsonl to draw, by name."""
    smooth: Annotated[int | None, tyro.conf.arg(metavar="STEPS", help_behavior_hint="")] = None
    """Steps over which every evaluation curve is averaged; 0: none; five evaluations if not given."""
    spread: Literal["std", "sem", "range", "none"] = "std"
    """What the bands show."""
    iqm: Switch = False
    """Interquartile mean with 95% stratified bootstrap intervals in place of mean and spread."""
    title: Annotated[str, tyro.conf.arg(help_behavior_hint="")] = ""
    """Title of the figure."""


@dataclass(frozen=True, kw_only=True)
class LandmarksOptions:
    """Draw a run's landmark maps: visited states, landmarks and walls at several phases of training."""

    run: Run
    """Folder of a run."""
    out: Out = Path("landmarks.png")
    """File to write: png, svg or pdf."""
    phases: int = 4
    """How many phases, evenly over training."""
    steps: Annotated[tuple[int, ...], tyro.conf.arg(metavar="STEP ...", help_behavior_hint="")] = ()
    """Steps to show in place of even phases; the nearest snapshots are taken."""
    graph: Switch = False
    """Also the graph, the shortest path, the selected landmark, the pseudo-landmark and the subgoal."""


@dataclass(frozen=True, kw_only=True)
class RenderOptions:
    """Make a video of a run's policy: from above and from a tracking camera, with subgoal and landmarks."""

    run: Run
    """Folder of a run; with --pretrained, a task."""
    pretrained: Switch = False
    """Take the trained policy of a task that comes with higl: `higl render ant-maze-u --pretrained`."""
    out: Annotated[
        Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE", help_behavior_hint="(default: RUN/video.mp4)")
    ] = None
    """File to write: mp4. `higl report` shows RUN/video.mp4; a --pretrained policy's goes into the present folder."""
    episodes: int = 1
    """Episodes to show."""
    seed: int = 0
    """Seed of the episodes; `higl eval` with the same seed has the same ones."""
    best: Switch = False
    """Show the best episodes of many: reached the goal, and soonest."""
    tries: int = 20
    """How many episodes --best chooses from."""
    whole: Switch = False
    """Show what comes after the goal was reached, too."""
    flat: Switch = False
    """Draw plans, which need no graphics library."""
    size: int = 480
    """Height of the pictures, in pixels."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Write one self-contained page about runs: curves, landmark maps, evaluation paths, videos, settings, times."""

    runs: Runs
    """Run folders, or folders with runs in them."""
    out: Out = Path("report.html")
    """File to write: html."""


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """Serve the report of runs to this machine only; the page refreshes itself while they train."""

    runs: Runs
    """Run folders, or folders with runs in them."""
    port: Annotated[int | None, tyro.conf.arg(metavar="PORT", help_behavior_hint="")] = None
    """Port to listen on; the first free one from 8765 on if not given."""
    every: float = 5.0
    """Seconds between two looks for news."""


def _read(arguments: Sequence[str], kind: type[Options], positional: str) -> Options:
    """Return a command's options; `runs` takes all positional arguments, `run` one."""
    words = ["--out" if word == "-o" else word for word in arguments]
    given, values = parse_flags(words, setting_types(kind))
    if not given:
        raise SettingsError("which run? give its folder")
    if positional == "run" and len(given) > 1:
        raise SettingsError(f"unexpected argument {given[1]!r}: this takes one run")
    return make_options(kind, {positional: given if positional == "runs" else given[0]} | values)


def _warn(notices: Sequence[str]) -> None:
    for notice in notices:
        print(f"notice: {notice}", file=sys.stderr)


@one_line_errors("plot")
def plot(arguments: list[str]) -> int:
    """Draw learning curves."""
    if asks_for_help(arguments):
        return show_help("plot", PlotOptions)
    options = _read(arguments, PlotOptions, "runs")
    check_suffix(options.out, PICTURES)
    if options.smooth is not None and options.smooth < 0:
        raise SettingsError(f"--smooth {options.smooth}: expected a number of steps, 0 for none")
    from higl.figures.curves import draw_times, make_curves, save
    from higl.figures.statistics import Smoothing
    from higl.run.reading import find_runs, notices_of

    runs = find_runs(options.runs)
    known = sorted({name for run in runs for name in run.metrics} - {"step", "episode", "time"})
    for name in options.metrics:
        if known and name not in known:
            raise SettingsError(f"--metrics {name}: none of these runs has measured it{nearest(name, known)}")
    _warn(notices_of(runs))
    if "times" in options.show:
        if options.show != ("times",):
            raise SettingsError("--show times is a figure of its own: give it alone")
        figure = draw_times(runs)
    else:
        smoothing = None if options.smooth is None else Smoothing(options.smooth)
        figure = make_curves(
            runs, cast(Any, options.show), options.metrics, options.title, smoothing=smoothing, spread=options.spread,
            iqm=options.iqm,
        )  # fmt: skip
    if figure is None:
        raise SettingsError("these runs have measured nothing of that yet")
    save(figure, options.out)
    print(f"{options.out}: {len(runs)} run{'s' if len(runs) > 1 else ''}")
    return 0


@one_line_errors("landmarks")
def landmarks(arguments: list[str]) -> int:
    """Draw a run's landmark maps."""
    if asks_for_help(arguments):
        return show_help("landmarks", LandmarksOptions)
    options = _read(arguments, LandmarksOptions, "run")
    check_suffix(options.out, PICTURES)
    if options.phases < 1:
        raise SettingsError("--phases must be 1 or more")
    from higl.figures.curves import save
    from higl.figures.maps import draw_landmarks

    run = _only_run(options.run)
    save(draw_landmarks(run, options.phases, options.steps, graph=options.graph), options.out)
    print(f"{options.out}: {run.title}")
    return 0


def _only_run(path: Path) -> reading.Run:
    from higl.errors import NoRunsError
    from higl.run.reading import find_runs

    runs = find_runs([path])
    if len(runs) > 1:
        raise NoRunsError(f"{path} holds {len(runs)} runs, and this takes one: {runs[0].path}, ...")
    _warn(runs[0].notices)
    return runs[0]


@one_line_errors("render")
def render(arguments: list[str]) -> int:
    """Make a video of a run's policy."""
    if asks_for_help(arguments):
        return show_help("render", RenderOptions)
    options = _read(arguments, RenderOptions, "run")
    if options.out is not None:
        check_suffix(options.out, (".mp4",))
    if min(options.episodes, options.tries) < 1 or options.size < 64 or options.seed < 0:
        raise SettingsError("--episodes and --tries must be 1 or more, --size 64 or more, --seed 0 or more")
    from higl.figures.video import make_video
    from higl.run.files import VIDEO

    # A policy that comes with the package may lie where nobody can write: its video goes here.
    run = _only_run(pretrained_run(str(options.run)) if options.pretrained else options.run)
    said = make_video(
        run,
        options.out or (Path(f"{run.path.name}.mp4") if options.pretrained else run.path / VIDEO),
        episodes=options.episodes,
        seed=options.seed,
        best=options.tries if options.best else 0,
        flat=True if options.flat else None,
        size=options.size,
        whole=options.whole,
        say=lambda text: print(f"notice: {text}", file=sys.stderr),
    )
    print(said)
    return 0


@one_line_errors("report")
def report(arguments: list[str]) -> int:
    """Write a page about runs."""
    if asks_for_help(arguments):
        return show_help("report", ReportOptions)
    options = _read(arguments, ReportOptions, "runs")
    check_suffix(options.out, (".html",))
    from higl.figures.report import write_report
    from higl.run.reading import find_runs, notices_of

    runs = find_runs(options.runs)
    _warn(notices_of(runs))
    write_report(runs, options.out)
    size = options.out.stat().st_size / 1e6
    print(f"{options.out}: {len(runs)} run{'s' if len(runs) > 1 else ''}, {size:.1f} MB")
    return 0


@one_line_errors("watch")
def watch(arguments: list[str]) -> int:
    """Serve the page about runs until interrupted."""
    if asks_for_help(arguments):
        return show_help("watch", WatchOptions)
    options = _read(arguments, WatchOptions, "runs")
    if options.every <= 0:
        raise SettingsError("--every must be more than 0")
    if options.port is not None and not 0 <= options.port <= 65535:
        raise SettingsError(f"there is no port {options.port}: they go from 0 to 65535")
    from higl.figures.watch import make_server

    server = make_server(options.runs, options.port, options.every)
    print(f"http://{server.server_address[0]}:{server.server_address[1]}/ shows the runs; Ctrl-C ends", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0
