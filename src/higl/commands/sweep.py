"""`higl sweep`: the figures of the paper, each as one command. Imports neither NumPy nor JAX before it must."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from higl.commands.arguments import asks_for_help, one_line_errors, read_options, show_help
from higl.config import Preset
from higl.process import prepare_process
from higl.settings import SettingsError, nearest
from higl.sweep.board import runs_table
from higl.sweep.catalogue import Entry, find_entry, read_catalogue
from higl.sweep.estimate import StepTimes, hours_left, measured, wall_hours
from higl.sweep.local import LocalBackend, choose_cores
from higl.sweep.plan import PlannedRun, make_plan, standing
from higl.sweep.runner import Backend, print_summary, run_sweep

_FILE_WIDTH = 160


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """List the sweeps of a catalogue: the paper's figures, or those of a file."""

    catalogue: Path | None = None
    """TOML file with own sweeps; the paper's figures if not given."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions(ListOptions):
    """Which runs of which sweep."""

    name: tyro.conf.Positional[str]
    """Name of the sweep; `higl sweep list` lists them."""
    out: Path = Path("runs")
    """Folder that holds the run folders. On a cluster: storage that all nodes share."""
    seeds: int | None = None
    """So many seeds of each curve; as many as the sweep has if not given."""
    only: tuple[str, ...] = ()
    """Only runs whose name has all of these words: `--only ant-maze-u-sparse higl,hrac`; `*` stands for anything."""
    steps: int | None = None
    """Environment steps of every run; as the sweep says if not given."""
    preset: Preset | None = None
    """Family of presets that the runs start from; as the sweep says (best) if not given."""


@dataclass(frozen=True, kw_only=True)
class ShowOptions(PlanOptions):
    """Show the runs of a sweep and how long they take on this machine, from `higl bench`."""

    cores: tuple[int, ...] = ()
    """Cores that the sweep would run on; all if not given."""
    estimate: bool = True
    """Measure what has not been measured yet (about a minute for each kind of run, once)."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(PlanOptions):
    """Run a sweep, or continue it: one run per core, or one task per run on a Ray cluster.

    Ctrl-C stops it: every run saves first. Finished runs are never repeated.
    """

    cores: tuple[int, ...] = ()
    """Cores to run on, one run on each; all if not given."""
    ray: str | None = None
    """Use Ray: its address (HOST:PORT), or nothing for the cluster of this machine, started if there is none."""
    checkpoint_minutes: float = 5.0
    """Minutes between two checkpoints of a run (0: after every episode)."""


@dataclass(frozen=True, kw_only=True)
class StatusOptions(PlanOptions):
    """Show where the runs of a sweep stand."""

    json: bool = False
    """Print one line of JSON for each run."""


@dataclass(frozen=True, kw_only=True)
class FigureOptions(PlanOptions):
    """Draw a sweep's figure from what its runs have reached."""

    figure: Path | None = None
    """File to write, also -o; its suffix says the format. NAME.png if not given."""
    iqm: bool = False
    """Interquartile mean with 95% stratified bootstrap intervals, in place of mean and standard deviation."""


@dataclass(frozen=True, kw_only=True)
class CollectOptions(PlanOptions):
    """Copy the small text files of a sweep's finished runs into results/."""

    results: Path = Path("results")
    """Folder of the results."""


@one_line_errors("sweep")
def sweep(arguments: list[str]) -> int:
    """Call one of the commands below `higl sweep`."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_usage())
        return 0 if arguments else 2
    word, rest = arguments[0], arguments[1:]
    if word not in _COMMANDS:
        raise SettingsError(f"unknown command {word!r}{nearest(word, _COMMANDS)} (`higl sweep --help` lists them)")
    action, kind, _ = _COMMANDS[word]
    if asks_for_help(rest):
        return show_help(f"sweep {word}", kind)
    positional = [] if kind is ListOptions else ["name"]
    return action(read_options(_spelled(rest), kind, positional))


def _spelled(words: list[str]) -> list[str]:
    """Return the words with `-o` and a `--ray` without an address written out."""
    spelled = []
    for place, word in enumerate(words):
        spelled.append("--figure" if word == "-o" else word)
        following = words[place + 1] if place + 1 < len(words) else "--"
        if word == "--ray" and ":" not in following and following not in ("auto", "local"):
            spelled.append("auto")
    return spelled


def _usage() -> str:
    lines = [
        "usage: higl sweep COMMAND ...",
        "",
        "Many runs: the figures of the paper, or a catalogue of your own.",
        "",
    ]
    lines += [f"  {name:7}  {help_line}" for name, (_, _, help_line) in _COMMANDS.items()]
    return "\n".join([*lines, "", "`higl sweep COMMAND --help` tells more."])


def _plan(options: PlanOptions) -> tuple[Entry, list[PlannedRun]]:
    entry = find_entry(read_catalogue(options.catalogue), options.name)
    if options.seeds is not None and options.seeds < 1:
        raise SettingsError(f"--seeds {options.seeds}: expected a number of more than 0")
    more = {name: getattr(options, name) for name in ("steps", "preset") if getattr(options, name) is not None}
    return entry, make_plan(entry, options.out, seeds=options.seeds, only=options.only, more=more)


def _console() -> Console:
    """Return where tables go: into a file or a pipe without folding names."""
    return Console() if sys.stdout.isatty() else Console(width=_FILE_WIDTH)


def list_entries(options: ListOptions) -> int:
    """Print the entries of a catalogue."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("sweep", "what", "tasks", "curves", "runs", "steps"):
        right = name in ("curves", "runs", "steps")
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right or name == "sweep")
    for entry in read_catalogue(options.catalogue).values():
        plan = make_plan(entry, Path())
        tasks = list(dict.fromkeys(f"{task.task} {task.reward}" for task in entry.tasks))
        shown = tasks[0] if len(tasks) == 1 else str(len(tasks))
        curves = str(len(entry.variants))
        steps = f"{sum(run.config.steps for run in plan) / 1e6:g}M"
        table.add_row(entry.name, Text(entry.title), shown, curves, str(len(plan)), steps)
    _console().print(table)
    return 0


def show_entry(options: ShowOptions) -> int:
    """Print the runs of an entry and the hours that they need."""
    entry, plan = _plan(options)
    cores = choose_cores(options.cores)
    standings = [standing(run) for run in plan]
    if options.estimate:
        prepare_process(cores[:1])  # as a run of the sweep: one core
    times = StepTimes()
    hours = hours_left(plan, standings, times, _measure if options.estimate else None)
    _console().print(runs_table(plan, standings, entry.title, hours))
    known = [each for each in hours if each is not None]
    if len(known) == len(hours):
        wall = wall_hours(known, len(cores))
        print(f"{len(plan)} runs, {sum(known):.1f} core hours left: about {wall:.1f} hours on {len(cores)} cores")
    else:
        print(f"{len(plan)} runs; hours are not known without measuring (leave out --no-estimate)")
    return 0


def _measure(config: object) -> float:
    from higl.config import Config

    assert isinstance(config, Config)
    print(f"measuring {config.algo} on {config.task} (once on this machine) ...", file=sys.stderr)
    return measured(config)


def run_entry(options: RunOptions) -> int:
    """Run what is left of an entry."""
    entry, plan = _plan(options)
    cores = choose_cores(options.cores)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.ray is None:
        backend: Backend = LocalBackend(cores, options.checkpoint_minutes)
    else:
        from higl.sweep.ray import RayBackend

        backend = RayBackend(options.ray, options.checkpoint_minutes)
    summary = run_sweep(plan, backend, Console(), entry.name)
    print_summary(summary, entry.name)
    return summary.exit_code


def show_status(options: StatusOptions) -> int:
    """Print where the runs of an entry stand."""
    entry, plan = _plan(options)
    standings = [standing(run) for run in plan]
    if options.json:
        for run, now in zip(plan, standings, strict=True):
            facts = {"state": now.state, "step": now.step, "steps": run.config.steps, "success": now.success}
            print(json.dumps({"run": str(run.folder), "variant": run.variant, **facts, "reason": now.reason}))
        return 0
    console = _console()
    console.print(runs_table(plan, standings, entry.title))
    for run, now in zip(plan, standings, strict=True):
        if now.reason:
            console.print(f"{run.name}: {now.reason}", markup=False, highlight=False, soft_wrap=True)
    return 0


def draw_entry(options: FigureOptions) -> int:
    """Draw the figure of an entry."""
    entry, plan = _plan(options)
    from higl.sweep.figure import draw

    out = options.figure or Path(f"{entry.name}.png")
    print(draw(entry, plan, out, iqm=options.iqm))
    return 0


def collect_entry(options: CollectOptions) -> int:
    """Copy the results of an entry's finished runs."""
    _, plan = _plan(options)
    from higl.sweep.results import add_run

    done = [run for run in plan if standing(run).done]
    for run in done:
        print(add_run(run.folder, options.results))
    print(f"{len(done)} of {len(plan)} runs are finished and in {options.results}")
    return 0


_COMMANDS: dict[str, tuple[Callable[[Any], int], type[ListOptions], str]] = {
    "list": (list_entries, ListOptions, "list the sweeps: the paper's figures, or a file's"),
    "show": (show_entry, ShowOptions, "the runs of a sweep, and how long they take on this machine"),
    "run": (run_entry, RunOptions, "run a sweep, or continue it"),
    "status": (show_status, StatusOptions, "where its runs stand"),
    "figure": (draw_entry, FigureOptions, "draw its figure"),
    "collect": (collect_entry, CollectOptions, "copy its finished runs into results/"),
}
