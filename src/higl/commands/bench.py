"""`higl bench`: what each stage of a run costs on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from higl.commands.arguments import Cores, Device, Switch, asks_for_help, one_line_errors, read_options, show_help
from higl.errors import SettingsError
from higl.run.process import prepare_process
from higl.settings.config import Algorithm


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """Time every stage of a run, beside the machine's matrix product rate at the same shapes.

    Several algorithms are measured in turns, and each compared with the last.
    """

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[TASK]")] = "ant-maze-u"
    """Short name of a task."""
    algos: tuple[Algorithm, ...] = ("higl", "hrac")
    """Algorithms to measure."""
    landmarks: Annotated[
        int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: as the preset has)")
    ] = None
    """Landmarks of each kind, coverage and novelty."""
    relabel: Switch = False
    """With relabelling of the high level's subgoals."""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None
    """File for all the numbers, as JSON."""
    cold: Switch = False
    """Measure the start-up too, with an empty and with a full compilation cache."""
    cores: Cores = ()
    """Cores to run on, as `--cores 0` for one."""
    device: Device = None
    """Where to learn."""


@one_line_errors("bench")
def bench(arguments: list[str]) -> int:
    """Measure, and print the tables."""
    if asks_for_help(arguments):
        return show_help("bench", BenchOptions)
    options = read_options(arguments, BenchOptions, ["task"])
    if not options.algos:
        raise SettingsError("--algos: give at least one algorithm")
    if options.landmarks is not None and options.landmarks < 0:
        raise SettingsError("--landmarks: expected a number of landmarks")
    prepare_process(options.cores, options.device)
    from higl.run.bench import run
    from higl.run.training import check_device
    from higl.settings.presets import PRESET_TASKS, short_name

    task = short_name(options.task)
    if task not in PRESET_TASKS:
        raise SettingsError(f"no preset for the task {options.task!r}: choose from {', '.join(PRESET_TASKS)}")
    check_device(options.device)
    run(task, options.algos, options.landmarks, options.relabel, options.json, options.cold)
    return 0
