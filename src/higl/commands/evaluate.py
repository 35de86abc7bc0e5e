"""`higl eval`: measure a trained policy over many episodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from higl.commands.arguments import Argument, Cores, Out, Run, Switch
from higl.commands.command import PICTURES, check_seed, check_suffix, command
from higl.commands.trust import TestedIn, TrustOptions, allowed_name
from higl.errors import SettingsError
from higl.pretrained import pretrained_run
from higl.run.process import prepare_process
from higl.run.reading import policy_path, tested_in
from higl.settings.presets import has_rewards
from higl.text import counted

if TYPE_CHECKING:
    import numpy as np

    from higl.run.goal_grid import GoalOutcome
    from higl.settings.config import Config

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
    goals: Literal["test", "grid"] = "test"
    """Goals of the episodes: the task's test goals, or a grid over all that can be reached, with a map of success."""
    out: Out = Path("goals.png")
    """With `--goals grid`: the map, a png, svg or pdf; a table of the same name (csv) goes beside it."""
    episodes: Annotated[int | None, Argument(default="100, or 1 of each goal of a grid")] = None
    """Number of episodes; of a grid, those of each goal."""
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
    if options.episodes is not None and options.episodes < 1:
        raise SettingsError("--episodes must be 1 or more")
    check_seed(options.seed)
    check_suffix(options.out, PICTURES)
    place = pretrained_run(str(options.run)) if options.pretrained else options.run
    file = policy_path(place)
    prepare_process(options.cores)
    from higl.envs.make import hinting_at_load
    from higl.run.measure import measure_policy
    from higl.run.policy_file import load_policy

    _, config = load_policy(file)
    stored = tested_in(place, config)
    task = allowed_name(options.test_env, stored, place, trust=options.trust, option="--env")
    with hinting_at_load(place, task, config.algo):
        goals, walls = _grid(place, file, task) if options.goals == "grid" else (None, None)
        each = options.episodes or (100 if goals is None else 1)
        episodes, repeated = (each, None) if goals is None else (each * len(goals), goals.repeat(each, axis=0))
        with _progress(episodes) as progress:
            measured = measure_policy(file, options.seed, episodes, task, progress, repeated)
    facts = {"policy": str(file), "task": config.task, "test_env": task, "reward": config.reward, "seed": options.seed}
    summary = facts | {"zero_shot": config.explores_freely} | measured.summary()
    if goals is not None:
        from higl.run.goal_grid import by_goal

        summary |= _write_goals(options.out, by_goal(goals, measured.outcomes), walls, config)
    if options.json:
        print(json.dumps(summary | (asdict(measured) if options.outcomes else {})))
    else:
        print(text(summary))
    return 0


def _grid(place: Path, file: Path, task: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the goals of a grid [N, G] and the walls of the environment [W, 4]."""
    import numpy as np

    from higl.run.coverage import maze_of
    from higl.run.goal_grid import grid_goals
    from higl.run.measure import load_tested

    env, policy = load_tested(file, task, chosen=True)
    maze = maze_of(env)
    walls = [] if maze is None else maze.wall_boxes()
    return grid_goals(place, policy, env), np.asarray(walls, float).reshape(-1, 4)


def _write_goals(out: Path, found: list[GoalOutcome], walls: Any, config: Config) -> dict[str, Any]:
    """Write the map and the table of a grid of goals; return what the summary says about it."""
    import numpy as np

    from higl.figures.curves import save
    from higl.figures.goal_map import draw_goals
    from higl.run.goal_grid import write_goals
    from higl.run.naming import run_title

    success = [each.evaluation.success for each in found]
    reached, table = sum(share > 0 for share in success), out.with_suffix(".csv")
    title = f"{run_title(config)}\n{reached} of {counted(len(found), 'goal')} reached"
    save(draw_goals(np.stack([each.goal for each in found]), success, walls, title), out)
    write_goals(table, found)
    facts = {"goals": len(found), "goals_reached": reached, "share_reached": reached / len(found)}
    return facts | {"map": str(out), "table": str(table)}


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
    if "goals" in summary:
        goals = f"a grid of {summary['goals']} goals"
    goals += " (zero-shot: trained without a goal)" if summary.get("zero_shot") else ""
    tested = "" if test_env == summary["task"] else f"tested in {test_env}, "
    steps = summary["steps_to_success"]
    lines = _goal_lines(summary) if "goals" in summary else []
    return "\n".join(
        [
            f"{summary['policy']}: {summary['task']}, {tested}{goals}, seed {summary['seed']}",
            f"  success           {_rate(summary, 'success')}, at any step",
            f"  at the last step  {_rate(summary, 'success_at_end')}",
            f"  steps to success  {'-' if steps is None else f'{steps:.1f}'}",
            f"  path length       {summary['path_length']:.2f}",
            f"  return            {summary['return']:.2f}",
            *lines,
        ]
    )


def _goal_lines(summary: dict[str, Any]) -> list[str]:
    return [
        f"  goals reached     {summary['share_reached']:.1%} of {summary['goals']} goals, in at least one episode",
        f"  map and table     {summary['map']}, {summary['table']}",
    ]


def _rate(summary: dict[str, Any], name: str) -> str:
    low, high = summary[f"{name}_interval"]
    return f"{summary[name]:.1%} of {summary['episodes']} episodes (95% interval {low:.1%} to {high:.1%})"
