"""What `higl train` and `higl resume` share: options of the process, and the work on a run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from higl.commands.arguments import Argument, Cores, Device, Switch, TestEnv
from higl.commands.trust import TrustOptions, allowed_name
from higl.errors import SettingsError
from higl.run.files import CHECKPOINT_MINUTES
from higl.run.naming import run_title
from higl.run.process import check_device
from higl.run.progress import make_progress
from higl.run.reading import last_evaluation, other_test_env, read_facts
from higl.run.stopping import StopAtSuccess
from higl.run.tracker_process import recorded_trackers
from higl.run.trackers import make_tracker
from higl.settings.config import Config


@dataclass(frozen=True, kw_only=True)
class WorkOptions(TrustOptions):
    """Options that do not change what a run computes."""

    quiet: Switch = False
    """Show warnings only."""
    cores: Cores = ()
    """Cores to run on. For two runs side by side, give one `--cores 0`, the other `--cores 1`."""
    device: Device = None
    """Device to learn on."""
    tracker: Annotated[str | None, Argument(metavar="NAME", default="")] = None
    """Tracker beside TensorBoard: wandb, trackio, or your own class as `module:Class`. A resumed run keeps its own."""
    stop_at: Annotated[float | None, Argument(metavar="SHARE", default="")] = None
    """Finish when five evaluations in a row have this mean success: `--stop-at 0.95`. A resumed run keeps it."""
    test_env: TestEnv = None
    """Environment of the evaluations, by its name (`module:id`), if not the task's own. A resumed run keeps it."""
    processes: Switch = False
    """With several environments (`--num-envs`): run each in a process of its own."""
    checkpoint_minutes: float = CHECKPOINT_MINUTES
    """Minutes between two checkpoints (0: after every episode)."""


Options = TypeVar("Options", bound=WorkOptions)


def with_earlier(options: Options, facts: Mapping[str, Any]) -> Options:
    """Return the options with those of the run's last start that are not given now."""
    earlier = {name: facts.get(name) for name in ("stop_at", "test_env") if getattr(options, name) is None}
    return replace(options, **earlier)


def announce_work(out: Path, config: Config, options: WorkOptions, facts: Mapping[str, Any] | None = None) -> None:
    """Say at once what is being done: importing JAX and compiling take a while.

    `facts` are those of a run that continues.
    """
    if options.quiet:
        return
    other = other_test_env(facts or {} if options.test_env is None else {"test_env": options.test_env}, config.task)
    tested = "" if other is None else f", tested in {other}"
    print(f"{run_title(config)}: {config.steps:,} steps in {out}{tested}; loading JAX and the environment", flush=True)


def check_test_env(out: Path, config: Config, options: WorkOptions, facts: Mapping[str, Any]) -> None:
    """Reject another test environment than that of the evaluations that a run has: its curve would mix them.

    Raises:
        SettingsError: it is another one.
    """
    earlier = other_test_env(facts, config.task) or config.task
    if options.test_env not in (None, earlier) and last_evaluation(out) is not None:
        raise SettingsError(
            f"{out} holds evaluations in {earlier}: leave out --test-env, or train a new run; "
            f"`higl eval {out} --env {options.test_env}` measures its policy there"
        )


def allow_stored(out: Path, facts: Mapping[str, Any], options: WorkOptions) -> None:
    """Import what only the run's folder names, its test environment and its trackers, if the user trusts it.

    Raises:
        TaskError: the user does not allow it, or it cannot be imported.
    """
    if options.test_env is None and facts.get("test_env"):
        allowed_name(None, facts["test_env"], out, trust=options.trust, option="--test-env")
    for name in recorded_trackers(out):
        named = name if options.tracker == name else None
        allowed_name(named, name, out, trust=options.trust, option="--tracker")


def work_on_run(
    out: Path,
    config: Config,
    options: WorkOptions,
    *,
    new: bool,
    env: str | None = None,
    start_from: Path | None = None,
) -> int:
    """Start or continue a run in this process, which is prepared; return the exit code.

    `env` replaces the name of the task; without it, a run on an environment object still has no id then. A new run may
    start from what another has learned.
    """
    trackers = [] if options.tracker is None else [options.tracker]
    for name in trackers:
        make_tracker(name)  # fail here, before anything is written
    callbacks = [] if options.stop_at is None else [StopAtSuccess(options.stop_at)]
    # Only now: these import JAX, which reads what `prepare_process` has set.
    from higl.envs.make import hinting_at_load
    from higl.envs.source import Source

    source = Source(env or config.task, options.test_env, config.reward, hide_goal=config.explores_freely)
    observe_achieved = config.observe_achieved
    with nullcontext() if new else hinting_at_load(out, env or config.task, config.algo):
        training_env = source.training_env(
            num_envs=config.num_envs, observe_achieved=observe_achieved, processes=options.processes
        )
    from higl.algo.policy import Spaces
    from higl.run.checks import check_same_spaces
    from higl.run.training import open_training

    check_device(options.device)
    test_env = source.test_env(observe_achieved=observe_achieved)
    if options.test_env is not None:
        check_same_spaces(Spaces.of(test_env), Spaces.of(training_env))
    progress = make_progress(quiet=options.quiet)
    with open_training(
        out,
        config,
        training_env,
        test_env,
        new=new,
        progress=progress,
        checkpoint_minutes=options.checkpoint_minutes,
        callbacks=callbacks,
        trackers=trackers,
        test_env_name=options.test_env,
        start_from=start_from,
        has_id=new or read_facts(out).get("has_id", True),
    ) as training:
        return training.run()
