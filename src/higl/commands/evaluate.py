"""`higl eval`: measure a trained policy over many episodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from higl.commands.arguments import Cores, Run, Switch
from higl.commands.command import check_seed, command
from higl.commands.trust import TestedIn, TrustOptions, allowed_name
from higl.errors import SettingsError
from higl.pretrained import pretrained_run
from higl.run.process import prepare_process
from higl.run.reading import policy_path, tested_in
from higl.settings.presets import has_rewards

# Seed of the test episodes, if none is given.
TEST_SEED = 0


@dataclass(frozen=True, kw_only=True)
class EvalOptions(TrustOptions):
    """Measure a trained policy on its task's test goals, without exploration, on all cores."""

    run: Run
    """Folder of a run, or a policy file; with --pretrained, a task."""
    pretrained: Switch = False
    """Use the trained policy that comes with higl: `higl eval ant-maze-u --pretrained`."""
    test_env: TestedIn = None
    """Environment to measure it in, by its name (`module:id`): instead of the run's own, or the task's."""
    episodes: int = 100
    """Number of episodes."""
    seed: int = TEST_SEED
    """Seed of the episodes; the same seed gives the same episodes on any number of cores."""
    cores: Cores = ()
    """Cores to run on."""
    json: Switch = False
    """Print one line of JSON."""
    outcomes: Switch = False
    """With --json: also the outcome of every episode."""


@command("eval", EvalOptions)
def evaluate(options: EvalOptions) -> int:
    """Measure a trained policy and print the summary."""
    if options.episodes < 1:
        raise SettingsError("--episodes must be 1 or more")
    check_seed(options.seed)
    place = pretrained_run(str(options.run)) if options.pretrained else options.run
    file = policy_path(place)
    prepare_process(options.cores)
    from higl.envs.make import hinting_at_load
    from higl.run.measure import measure_policy
    from higl.run.policy_file import load_policy

    _, config = load_policy(file)
    stored = tested_in(place, config)
    task = allowed_name(options.test_env, stored, place, trust=options.trust, option="--env")
    with hinting_at_load(place, task, config.algo), _progress(options.episodes) as progress:
        measured = measure_policy(file, options.seed, options.episodes, task, progress)
    facts = {"policy": str(file), "task": config.task, "test_env": task, "reward": config.reward, "seed": options.seed}
    summary = facts | measured.summary()
    if options.json:
        print(json.dumps(summary | (asdict(measured) if options.outcomes else {})))
    else:
        print(text(summary))
    return 0


@contextmanager
def _progress(episodes: int) -> Generator[Callable[[int], None]]:
    """Show a progress bar on standard error, if that is a terminal; it is gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        place = bar.add_task("episodes", total=episodes)
        yield lambda done: bar.update(place, completed=done)


def text(summary: dict[str, Any]) -> str:
    """Return a summary as text."""
    test_env, reward = summary["test_env"], summary["reward"]
    goals = f"{reward} reward, test goals" if has_rewards(test_env) else "its own reward and goals"
    tested = "" if test_env == summary["task"] else f"tested in {test_env}, "
    steps = summary["steps_to_success"]
    return "\n".join(
        [
            f"{summary['policy']}: {summary['task']}, {tested}{goals}, seed {summary['seed']}",
            f"  success           {_rate(summary, 'success')}, at any step",
            f"  at the last step  {_rate(summary, 'success_at_end')}",
            f"  steps to success  {'-' if steps is None else f'{steps:.1f}'}",
            f"  path length       {summary['path_length']:.2f}",
            f"  return            {summary['return']:.2f}",
        ]
    )


def _rate(summary: dict[str, Any], name: str) -> str:
    low, high = summary[f"{name}_interval"]
    return f"{summary[name]:.1%} of {summary['episodes']} episodes (95% interval {low:.1%} to {high:.1%})"
