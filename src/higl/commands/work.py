"""What `higl train` and `higl resume` share: options of the process, and the work on a run."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from higl.commands.arguments import Cores, Device, Switch
from higl.run.files import CHECKPOINT_MINUTES
from higl.run.naming import run_title
from higl.run.process import check_device
from higl.run.progress import make_progress
from higl.settings.config import Config


@dataclass(frozen=True, kw_only=True)
class WorkOptions:
    """Options that do not change what a run computes."""

    quiet: Switch = False
    """Show warnings only."""
    cores: Cores = ()
    """Cores to run on. For two runs side by side, give one `--cores 0`, the other `--cores 1`."""
    device: Device = None
    """Device to learn on."""
    processes: Switch = False
    """With several environments (`--num-envs`): run each in a process of its own."""
    checkpoint_minutes: float = CHECKPOINT_MINUTES
    """Minutes between two checkpoints (0: after every episode)."""


def announce_work(out: Path, config: Config, options: WorkOptions) -> None:
    """Say at once what is being done: importing JAX and compiling take a while."""
    if not options.quiet:
        print(f"{run_title(config)}: {config.steps:,} steps in {out}; loading JAX and the environment", flush=True)


def work_on_run(out: Path, config: Config, options: WorkOptions, *, new: bool, env: str | None = None) -> int:
    """Start or continue a run in this process, which is prepared; return the exit code.

    `env` replaces the name of the task.
    """
    # Only now: these import JAX, which reads what `prepare_process` has set.
    from higl.envs.make import hinting_at_load
    from higl.envs.source import Source

    source, observe_achieved = Source(env or config.task, None, config.reward), config.observe_achieved
    with nullcontext() if new else hinting_at_load(out, env or config.task, config.algo):
        training_env = source.training_env(
            num_envs=config.num_envs, observe_achieved=observe_achieved, processes=options.processes
        )
    from higl.run.training import open_training

    check_device(options.device)
    test_env = source.test_env(observe_achieved=observe_achieved)
    progress = make_progress(quiet=options.quiet)
    minutes = options.checkpoint_minutes
    with open_training(
        out, config, training_env, test_env, new=new, progress=progress, checkpoint_minutes=minutes
    ) as training:
        return training.run()
