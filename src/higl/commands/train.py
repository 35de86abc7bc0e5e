"""`higl train`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated

from higl.commands.arguments import Argument, ArgumentParser, Switch, make_options
from higl.commands.command import agrees, asks_for_help, check_checkpoint_minutes, one_line_errors
from higl.commands.trust import allow_module, import_task_module
from higl.commands.work import WorkOptions, allow_stored, announce_work, check_test_env, with_earlier, work_on_run
from higl.errors import SettingsError
from higl.run.held import OTHER_SETTINGS, HeldRun, find_held_run, other_settings_text
from higl.run.naming import run_name
from higl.run.process import prepare_process
from higl.run.reading import how_to_continue, how_to_evaluate, is_run, read_config, read_facts
from higl.run.starting import check_start
from higl.settings.config import Config
from higl.settings.flat import Layer, differences
from higl.settings.layers import apply, build_config, given_settings, read_settings, setting_types
from higl.settings.presets import is_derivable, is_derived, short_name


@dataclass(frozen=True, kw_only=True)
class TrainOptions(WorkOptions):
    """Options of `higl train` beside the settings of the run."""

    config: Annotated[Path | None, Argument(metavar="FILE")] = None
    """TOML file with settings; flags override it."""
    out: Annotated[
        Path | None, Argument(metavar="RUN", default="runs/TASK-REWARD[-tested-in-ENV]-ALGO[-CHANGES]-SEED")
    ] = None
    """Folder of the run."""
    start_from: Annotated[Path | None, Argument(flag="--from", metavar="RUN", default="")] = None
    """Start with all that another run has learned: weights, buffers, map. Settings are that run's, with the goals of
    the task, unless given; the task may be left out."""
    verbose: Switch = False
    """Print all derived settings with their reasons."""
    resume: Switch = False
    """If the folder already holds this run, continue it without asking."""


_ABOUT_TRAIN = """
Train a task: a short name (`higl tasks` lists them) or any Gymnasium id. Settings come from the preset, then from a
file (--config), then from flags.

The defaults below are those of HIGL with the preset best, or of the algorithm, preset and task that you name: `higl
train pusher --preset paper --algo hrac --help`. The preset best is the same for every task; what depends on the
environment, such as goal_unit and high.period, is derived from it when a run starts.
"""


def _parser(
    config: Config | None = None, options: TrainOptions | None = None, given: Collection[str] = ()
) -> ArgumentParser:
    """Return the parser of `higl train`; its help shows these values as defaults, or that they are derived."""
    parser = ArgumentParser("train", _ABOUT_TRAIN)
    parser.add(TrainOptions, options)
    names = set(setting_types(Config)) - set(given)
    derived = {name: "derived" for name in names if config is not None and is_derivable(name, config)}
    parser.add(Config, config, title="settings", positional=["task"], instead=derived)
    return parser


@one_line_errors("train")
def train(arguments: list[str]) -> int:
    """Train a task into a new run folder, or continue the run that is in it."""
    if any(word.partition("=")[0] == "--env" for word in arguments):  # as the commands that read a run have it
        raise SettingsError("unknown option --env: name the environment first, higl train module:Id")
    flags = _parser().parse([word for word in arguments if not asks_for_help([word])])
    names = {field.name for field in fields(TrainOptions)}
    options = make_options(TrainOptions, {name: flags.pop(name) for name in names & set(flags)})
    check_checkpoint_minutes(options.checkpoint_minutes)
    if asks_for_help(arguments):
        return _show_help(flags, options)
    config = _chosen_config(flags, options)
    # Before settings are derived: what is given tells runs apart.
    out = options.out or default_folder(config, options.test_env, options.start_from)
    if not is_run(out):
        announce_work(out, config, options)
    _import_task(config.task, flags, options)
    scheduled: list[str] = []
    if is_derived(config) and options.start_from is None:
        config, scheduled = _derived(config, given_settings(flags, options.config), options)
    # A schedule that was derived for another number of steps is no other run.
    held = find_held_run(out, config, set(setting_types(Config)) - set(scheduled))
    if held is not None:
        return _train_again(held, config, options)
    return work_on_run(out, config, options, new=True, start_from=options.start_from)


def _chosen_config(flags: Layer, options: TrainOptions) -> Config:
    """Return the settings of a preset or of the run to start from, changed by a file, then by flags."""
    if options.start_from is None:
        return build_config(flags, options.config)
    layer = {} if options.config is None else read_settings(options.config)
    config = apply(read_config(options.start_from), {"goal": "given"} | layer | flags)
    config = replace(config, task=short_name(config.task))
    check_start(config, options.start_from)
    return config


def _import_task(task: str, flags: Layer, options: TrainOptions) -> None:
    """Import the module of the task if the user named it, or allows it for a task that a file of settings names."""
    naming = options.config or options.start_from
    if "task" not in flags and naming is not None:
        allow_module(task, naming, trust=options.trust, instead=f"the task, `higl train {task} ...`")
    prepare_process(options.cores, options.device)
    for name in filter(None, [task, options.test_env]):
        import_task_module(name)


def _derived(config: Config, given: set[str], options: TrainOptions) -> tuple[Config, list[str]]:
    """Return settings derived from the environment, and print them.

    And the names of those that were derived from the number of steps.
    """
    from higl.envs.make import make_env
    from higl.settings.derive import derive_schedule, derive_settings

    say = None if options.quiet else print
    brief = not options.verbose
    env = make_env(config.task, config.reward, hide_goal=config.explores_freely)
    config, found = derive_settings(config, given, env, say, brief=brief)
    config, schedule = derive_schedule(config, given, say, brief=brief, found=found)
    return config, [derived.name for derived in schedule]


def _show_help(flags: Layer, options: TrainOptions) -> int:
    if "task" not in flags and options.config is None:
        flags = {"task": "ant-maze-u"} | flags
    config, given = build_config(flags, options.config), given_settings(flags, options.config)
    print(_parser(config, options, given).help(), end="")
    return 0


def default_folder(config: Config, test_env: str | None = None, start_from: Path | None = None) -> Path:
    """Return the default folder of a run, where a sweep looks for it too."""
    origin = [] if start_from is None else [start_from.resolve().name]
    return Path("runs") / "-from-".join([run_name(config, test_env), *origin])


def _train_again(held: HeldRun, config: Config, options: TrainOptions) -> int:
    """Offer to continue the run that a folder already holds."""
    out, steps = held.folder, held.config.steps
    if held.state == OTHER_SETTINGS:
        raise SettingsError(held.reason)
    facts = read_facts(out)
    check_test_env(out, held.config, options, facts)
    origin = None if options.start_from is None else str(options.start_from.resolve())
    if facts.get("from") != origin:
        raise SettingsError(f"{out} holds this run, begun from {facts.get('from') or 'nothing'}: choose another --out")
    continuing = how_to_continue(out, facts, held.config)
    if steps < config.steps:
        more = f" --steps {config.steps}" if facts.get("has_id", True) else ""
        raise SettingsError(
            f"{out} holds this run with {steps:,} steps: `{continuing}{more}` continues it; or choose another --out"
        )
    if steps > config.steps:
        raise SettingsError(other_settings_text(out, differences(held.config, config, ["steps"])))
    if held.state == "finished":
        print(f"{out} holds this run, which is finished. `{how_to_evaluate(out, facts, held.config)}` evaluates it.")
        return 0
    if not options.resume and not agrees(f"{out} already holds this run. Continue it?", default=True):
        raise SettingsError(f"{out} already holds this run: `{continuing}` continues it; or choose another --out")
    announce_work(out, held.config, options, facts)
    allow_stored(out, facts, options)
    return work_on_run(out, held.config, with_earlier(options, facts), new=False)
