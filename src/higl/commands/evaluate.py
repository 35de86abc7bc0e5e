"""`higl eval`: how well a trained policy does, over many episodes."""

from __future__ import annotations

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from higl.commands.arguments import Cores, Run, Switch
from higl.commands.command import command
from higl.errors import RunFolderError, SettingsError, WrongFolderError
from higl.pretrained import pretrained_run
from higl.run.files import POLICY
from higl.run.intervals import wilson_interval
from higl.run.process import available_cores, prepare_process
from higl.run.reading import is_run
from higl.settings.presets import has_rewards

if TYPE_CHECKING:
    import gymnasium

    from higl.run.measure import Outcome
    from higl.settings.config import Config


# Seed of the test episodes, if none is given.
TEST_SEED = 0


@dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """Measure a trained policy on its task's test goals, without exploration, on all cores."""

    run: Run
    """Folder of a run, or a policy file; with --pretrained, a task."""
    pretrained: Switch = False
    """Use the trained policy that comes with higl: `higl eval ant-maze-u --pretrained`."""
    episodes: int = 100
    """Number of episodes."""
    seed: int = TEST_SEED
    """Seed of the episodes; the same seed gives the same episodes on any number of cores."""
    cores: Cores = ()
    """Cores to run on."""
    json: Switch = False
    """Print one line of JSON, with every episode."""


@command("eval", EvalOptions)
def evaluate(options: EvalOptions) -> int:
    """Measure a trained policy and print the summary."""
    if options.episodes < 1 or options.seed < 0:
        raise SettingsError("--episodes must be 1 or more, and --seed 0 or more")
    file = policy_path(pretrained_run(str(options.run)) if options.pretrained else options.run)
    prepare_process(options.cores)
    from higl.envs.make import hinting_at_load
    from higl.run.policy_file import load_policy

    _, config = load_policy(file)
    with hinting_at_load(file if options.run.is_file() else options.run, config.task, config.algo):
        _test_env(config).close()  # fail here, before any process is started
    outcomes = measure(file, options.seed, options.episodes)
    summary = {"policy": str(file), "task": config.task, "reward": config.reward, "seed": options.seed}
    summary |= summarise(outcomes)
    if options.json:
        print(json.dumps(summary | {"outcomes": [asdict(outcome) for outcome in outcomes]}))
    else:
        print(text(summary))
    return 0


def policy_path(run: Path) -> Path:
    """Return the policy file of a run.

    Raises:
        RunFolderError: there is none.
    """
    if run.is_file():
        return run
    if not is_run(run):
        raise WrongFolderError(f"{run} is neither a run folder nor a policy file")
    if not (run / POLICY).exists():
        raise RunFolderError(f"{run} has no policy yet: it is written with the first checkpoint")
    return run / POLICY


def measure(file: Path, seed: int, episodes: int) -> list[Outcome]:
    """Run the episodes, shared out among the cores."""
    workers = min(available_cores(), episodes)
    shares = [range(start, episodes, workers) for start in range(workers)]
    if workers == 1:
        return _measure_share(file, seed, shares[0])
    context = multiprocessing.get_context("spawn")  # a fork would copy JAX in the middle of its threads' work
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        parts = list(pool.map(_measure_share, [file] * workers, [seed] * workers, shares))
    return [parts[index % workers][index // workers] for index in range(episodes)]


def _measure_share(file: Path, seed: int, indices: range) -> list[Outcome]:
    from higl.run.measure import evaluate as run_episodes
    from higl.run.policy_file import load_policy
    from higl.run.seeds import MEASURING, episode_seed

    policy, config = load_policy(file)
    return run_episodes(_test_env(config), policy, [episode_seed(seed, MEASURING, index) for index in indices])


def _test_env(config: Config) -> gymnasium.Env:
    from higl.envs.make import make_env

    return make_env(config.task, config.reward, "test", observe_achieved=config.observe_achieved)


def summarise(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return the averages over episodes; `steps_to_success` is over those that succeeded, None if none did."""
    count = len(outcomes)
    successes = sum(outcome.success for outcome in outcomes)
    times = [outcome.steps_to_success for outcome in outcomes if outcome.steps_to_success is not None]
    return {
        "episodes": count,
        "successes": successes,
        "success": successes / count,
        "success_interval": wilson_interval(successes, count),
        "steps_to_success": sum(times) / len(times) if times else None,
        "path_length": sum(outcome.path_length for outcome in outcomes) / count,
        "return": sum(outcome.reward for outcome in outcomes) / count,
    }


def text(summary: dict[str, Any]) -> str:
    """Return a summary as people read it."""
    low, high = summary["success_interval"]
    goals = f"{summary['reward']} reward, test goals" if has_rewards(summary["task"]) else "its own reward and goals"
    steps = summary["steps_to_success"]
    return "\n".join(
        [
            f"{summary['policy']}: {summary['task']}, {goals}, seed {summary['seed']}",
            f"  success           {summary['success']:.1%} of {summary['episodes']} episodes "
            f"(95% interval {low:.1%} to {high:.1%})",
            f"  steps to success  {'-' if steps is None else f'{steps:.1f}'}",
            f"  path length       {summary['path_length']:.2f}",
            f"  return            {summary['return']:.2f}",
        ]
    )
