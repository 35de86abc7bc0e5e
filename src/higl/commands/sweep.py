"""`higl sweep`: the figures of the paper, each as one command. NumPy and JAX are imported only when needed."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from higl.commands.arguments import Argument, Cores, Folder, Switch
from higl.commands.command import PICTURES, check_checkpoint_minutes, check_suffix, command, group
from higl.commands.results import allow_task, check_test, tested
from higl.commands.trust import TrustOptions, allow_module
from higl.errors import RunFolderError, SettingsError
from higl.run.files import CHECKPOINT_MINUTES
from higl.run.naming import variant_name
from higl.run.process import prepare_process
from higl.settings.config import Config, Preset
from higl.sweep.backend import Backend
from higl.sweep.board import runs_table
from higl.sweep.catalogue import MAX_SEEDS, PAPER, Entry, find_entry, read_catalogue
from higl.sweep.estimate import StepTimes, hours_left, measured, unmeasured, wall_hours
from higl.sweep.local import LocalBackend, choose_cores
from higl.sweep.plan import PlannedRun, make_plan, presets_text, read_status
from higl.sweep.runner import print_summary, run_sweep
from higl.text import counted, duration, module_in, steps_text

_FILE_WIDTH = 160

AsTheSweep = Argument(default="as in the catalogue")


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """List the sweeps of a catalogue: the paper's figures, or those of a file."""

    catalogue: Annotated[Path | None, Argument(metavar="FILE", default="the paper's figures")] = None
    """TOML file with sweeps of your own."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions(ListOptions):
    """Which runs of which sweep."""

    name: Annotated[str, Argument(positional=True, metavar="NAME", missing="which sweep? `higl sweep list` lists them")]
    """Name of the sweep; `higl sweep list` lists them."""
    out: Folder = Path("runs")
    """Folder that holds the run folders. On a cluster: storage that all nodes share."""
    seeds: Annotated[int | None, AsTheSweep] = None
    """Number of seeds of each curve."""
    only: Annotated[tuple[str, ...], Argument(metavar="WORD", default="all")] = ()
    """Only runs whose name contains all of these words: `--only ant-maze-u-sparse higl,hrac`; `*` matches anything."""
    steps: Annotated[int | None, AsTheSweep] = None
    """Environment steps of every run."""
    preset: Annotated[Preset | None, Argument(default="as in the catalogue, else best")] = None
    """Preset that the runs start from."""


@dataclass(frozen=True, kw_only=True)
class ShowSweepOptions(PlanOptions):
    """Show the runs of a sweep and how long they take on this machine.

    Each kind of run is measured once on each machine, as `higl bench` does: one or two minutes per kind.
    """

    cores: Cores = ()
    """Cores that the sweep would run on."""
    no_estimate: Switch = False
    """Measure nothing; show only times that are already known."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(PlanOptions, TrustOptions):
    """Run a sweep, or continue it: one run per core, or one task or job per run on a cluster.

    Ctrl-C stops it after every run has saved. Finished runs are never repeated.
    """

    cores: Cores = ()
    """Cores to run on, one run per core."""
    ray: Annotated[str | None, Argument(metavar="ADDRESS", bare="auto")] = None
    """Use Ray: the cluster at HOST:PORT; `local`: a new one on this machine; without an address: the cluster of
    RAY_ADDRESS or of this machine, else a new one."""
    slurm: Annotated[str | None, Argument(metavar="OPTIONS", bare="")] = None
    """Use Slurm, if needed with options of sbatch: `partition=cpu,time=12:00:00,mem=4G`."""
    checkpoint_minutes: float = CHECKPOINT_MINUTES
    """Minutes between two checkpoints of a run (0: after every episode)."""


@dataclass(frozen=True, kw_only=True)
class StatusOptions(PlanOptions):
    """Show the state of a sweep's runs."""

    json: Switch = False
    """Print one line of JSON per run."""


@dataclass(frozen=True, kw_only=True)
class FigureOptions(PlanOptions):
    """Draw a sweep's figure from the evaluations of its runs so far."""

    figure: Annotated[Path | None, Argument(alias="-o", metavar="FILE", default="NAME.png")] = None
    """File to write: png, svg or pdf."""
    iqm: Switch = False
    """Draw the interquartile mean with 95% stratified bootstrap intervals in place of mean and standard deviation."""


@dataclass(frozen=True, kw_only=True)
class CollectOptions(PlanOptions, TrustOptions):
    """Copy the small text files of a sweep's finished runs into results/."""

    results: Folder = Path("results")
    """Folder of the results."""
    test: int = 0
    """Also measure each policy over this many test episodes, as `higl results add` does."""


def _plan(options: PlanOptions) -> tuple[Entry, list[PlannedRun]]:
    entry = find_entry(read_catalogue(options.catalogue), options.name)
    if options.seeds is not None and not 0 < options.seeds <= MAX_SEEDS:
        raise SettingsError(f"--seeds {options.seeds}: expected a number from 1 to {MAX_SEEDS:,}")
    more = {name: getattr(options, name) for name in ("steps", "preset") if getattr(options, name) is not None}
    return entry, make_plan(entry, options.out, seeds=options.seeds, only=options.only, more=more)


def _console() -> Console:
    """Return the console for tables; lines in a file or a pipe are wide enough not to fold names."""
    return Console() if sys.stdout.isatty() else Console(width=_FILE_WIDTH)


@command("sweep list", ListOptions)
def list_entries(options: ListOptions) -> int:
    """Print the entries of a catalogue."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("sweep", "what", "preset", "tasks", "curves", "runs", "steps"):
        right = name in ("curves", "runs", "steps")
        table.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right or name == "sweep")
    for entry in read_catalogue(options.catalogue).values():
        plan = make_plan(entry, Path())
        tasks = list(dict.fromkeys(f"{task.task} {task.reward}" for task in entry.tasks))
        shown = tasks[0] if len(tasks) == 1 else str(len(tasks))
        curves = str(len(entry.variants))
        steps = steps_text(sum(run.config.steps for run in plan))
        presets = presets_text(plan).removeprefix("preset ")
        table.add_row(entry.name, Text(entry.title), presets, shown, curves, str(len(plan)), steps)
    _console().print(table)
    return 0


@command("sweep show", ShowSweepOptions)
def show_entry(options: ShowSweepOptions) -> int:
    """Print the runs of an entry and the time that they need."""
    entry, plan = _plan(options)
    cores = choose_cores(options.cores)
    statuses = [read_status(run) for run in plan]
    if not options.no_estimate:
        prepare_process(cores[:1])  # one core, as for a run of the sweep
    times = StepTimes()
    kinds = unmeasured(plan, statuses, times)
    hours = hours_left(plan, statuses, times, None if options.no_estimate else _measuring(len(kinds)))
    _console().print(runs_table(plan, statuses, f"{entry.title} ({presets_text(plan)})", hours))
    known = [each for each in hours if each is not None]
    count = counted(len(plan), "run")
    if len(known) == len(hours):
        whole, wall = duration(3600 * sum(known)), duration(3600 * wall_hours(known, len(cores)))
        print(f"{count}, {whole} of work left: about {wall} on {counted(len(cores), 'core')}")
    elif options.no_estimate:
        print(f"{count}; how long they take is unknown without measuring (omit --no-estimate)")
    else:
        print(f"{count}; runs without a time derive their settings from their environment when they start")
    return 0


def _measuring(count: int) -> Callable[[Config], float]:
    """Return a function that measures the step time of a kind of run and prints which of `count` it is."""
    number = itertools.count(1)

    def measure(config: Config) -> float:
        sampled = config.landmarks
        landmarks = f", {sampled.coverage} + {sampled.novelty} landmarks" if config.uses_landmarks else ""
        place = next(number)
        if place == 1:
            kinds = counted(count, "kind")
            print(
                f"measuring {kinds} of runs, a minute or two each, once on this machine; other load makes the "
                "times too long",
                file=sys.stderr,
            )
        print(f"measuring {place} of {count}: {config.algo} on {config.task}{landmarks}", file=sys.stderr, flush=True)
        return measured(config)

    return measure


@command("sweep run", RunOptions)
def run_entry(options: RunOptions) -> int:
    """Run the unfinished runs of an entry."""
    check_checkpoint_minutes(options.checkpoint_minutes)
    given = {"--slurm": options.slurm is not None, "--ray": options.ray is not None, "--cores": bool(options.cores)}
    chosen = [name for name, is_given in given.items() if is_given]
    if len(chosen) > 1:  # a cluster chooses cores itself
        raise SettingsError(f"{chosen[0]} and {chosen[1]}: choose one of them")
    if options.ray is not None and ":" not in options.ray and options.ray not in ("auto", "local"):
        raise SettingsError(f"--ray {options.ray}: expected HOST:PORT, `local` or nothing")
    entry, plan = _plan(options)
    for task in dict.fromkeys(run.config.task for run in plan):
        allow_module(task, options.catalogue or PAPER, trust=options.trust)
    plan = [replace(run, trusted=bool(module_in(run.config.task))) for run in plan]
    cores = choose_cores(options.cores)
    options.out.mkdir(parents=True, exist_ok=True)
    summary = run_sweep(plan, _backend(options, cores), Console(), entry.name)
    print_summary(summary, entry.name)
    return summary.exit_code


def _backend(options: RunOptions, cores: list[int]) -> Backend:
    if options.slurm is not None:
        from higl.sweep.slurm import SlurmBackend, read_slurm_options

        return SlurmBackend(read_slurm_options(options.slurm), options.out, options.checkpoint_minutes)
    if options.ray is not None:
        from higl.sweep.ray import RayBackend

        return RayBackend(options.ray, options.checkpoint_minutes)
    return LocalBackend(cores, options.checkpoint_minutes)


@command("sweep status", StatusOptions)
def show_status(options: StatusOptions) -> int:
    """Print the state of an entry's runs."""
    entry, plan = _plan(options)
    statuses = [read_status(run) for run in plan]
    if options.json:
        for run, status in zip(plan, statuses, strict=True):
            facts = {"state": status.state, "step": status.step, "steps": run.config.steps, "success": status.success}
            print(json.dumps({"run": str(run.folder), "variant": run.variant, **facts, "reason": status.reason}))
        return 0
    console = _console()
    console.print(runs_table(plan, statuses, entry.title))
    for run, status in zip(plan, statuses, strict=True):
        if status.reason:
            console.print(f"{run.name}: {status.reason}", markup=False, highlight=False, soft_wrap=True)
    return 0


@command("sweep figure", FigureOptions)
def draw_entry(options: FigureOptions) -> int:
    """Draw the figure of an entry."""
    entry, plan = _plan(options)
    out = options.figure or Path(f"{entry.name}.png")
    check_suffix(out, PICTURES)
    from higl.sweep.figure import draw

    print(draw(entry, plan, out, iqm=options.iqm))
    return 0


@command("sweep collect", CollectOptions)
def collect_entry(options: CollectOptions) -> int:
    """Copy the results of an entry's finished runs; one that cannot be copied does not stop the others."""
    check_test(options.test)
    _, plan = _plan(options)
    from higl.errors import ResultsError
    from higl.sweep.results import add_run, add_test

    done = [run for run in plan if read_status(run).done]
    failed = []
    for run in done:
        # A run may derive a setting that the catalogue gives another one, so it is named after the catalogue.
        variant = variant_name(run.config) if run.derives else None
        if options.test:
            allow_task(run.folder, trust=options.trust)
        try:
            # A run with enough steps for the sweep may have been stopped on its way to more.
            place = add_run(run.folder, options.results, variant=variant, partial=True)
            if options.test:
                add_test(place, tested(run.folder, options.test))
            print(place)
        except (ResultsError, RunFolderError, OSError) as error:
            failed.append(f"{run.name}: {error}")
    print(f"{len(done) - len(failed)} of {len(plan)} runs are finished and in {options.results}")
    for line in failed:
        print(f"higl sweep: not collected: {line}", file=sys.stderr)
    return 1 if failed else 0


sweep = group(
    "sweep",
    "Many runs: the figures of the paper, or a catalogue of your own.",
    {
        "list": (list_entries, "list the sweeps: the paper's figures, or those of a file"),
        "show": (show_entry, "show the runs of a sweep, and how long they take on this machine"),
        "run": (run_entry, "run a sweep, or continue it"),
        "status": (show_status, "show the state of its runs"),
        "figure": (draw_entry, "draw its figure"),
        "collect": (collect_entry, "copy its finished runs into results/"),
    },
)
