"""`higl bench`: the time of every stage of a run on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from higl.commands.arguments import Argument, Cores, Device, Switch
from higl.commands.command import command
from higl.errors import SettingsError
from higl.run.process import prepare_process
from higl.settings.config import Algorithm, Precision, Preset


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """Time every stage of a run, and compare it with the machine's rate of matrix products of the same shapes.

    Several algorithms are measured in turn and compared with the last one.
    """

    task: Annotated[str, Argument(positional=True, metavar="TASK")] = "ant-maze-u"
    """Short name of a task."""
    algos: tuple[Algorithm, ...] = ("higl", "hrac")
    """Algorithms to measure."""
    preset: Preset = "best"
    """Preset to start from; with `paper`, HIGL has the paper's graph instead of a walked map."""
    landmarks: Annotated[int | None, Argument(default="as in the preset")] = None
    """Number of landmarks of each kind, coverage and novelty; of a walked map, the largest number."""
    relabel: Annotated[bool | None, Argument(default="as in the preset")] = None
    """Relabel the high level's subgoals."""
    precision: Precision = "auto"
    """Precision of the matrix products of learning."""
    json: Annotated[Path | None, Argument(metavar="FILE")] = None
    """File to write all numbers to, as JSON."""
    cold: Switch = False
    """Also measure the start-up time, with an empty and with a filled compilation cache."""
    cores: Cores = ()
    """Cores to run on: `--cores 0` for one core."""
    device: Device = None
    """Device to learn on."""


@command("bench", BenchOptions)
def bench(options: BenchOptions) -> int:
    """Measure, and print the tables."""
    if not options.algos:
        raise SettingsError("--algos: give at least one algorithm")
    if options.landmarks is not None and options.landmarks < 0:
        raise SettingsError("--landmarks: expected a number of landmarks")
    prepare_process(options.cores, options.device)
    from higl.run.bench import bench_configs, run
    from higl.run.process import check_device
    from higl.settings.presets import PAPER_TASKS, short_name

    task = short_name(options.task)
    if task not in PAPER_TASKS:
        raise SettingsError(f"higl bench does not know the task {options.task!r}: choose from {', '.join(PAPER_TASKS)}")
    check_device(options.device)
    configs = bench_configs(
        task,
        options.algos,
        options.preset,
        landmarks=options.landmarks,
        relabel_subgoals=options.relabel,
        precision=options.precision,
    )
    run(configs, options.json, cold=options.cold)
    return 0
