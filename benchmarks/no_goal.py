"""Explore without a goal, then go anywhere: HIGL, its ablations, and HRAC with random goals.

    .venv/bin/python benchmarks/no_goal.py point-maze --steps 100000 --seeds 300 301 --cores 0
    .venv/bin/python benchmarks/no_goal.py key-door --methods frontier random hrac
    .venv/bin/python benchmarks/no_goal.py --table

Tasks are names that `higl train` takes, and the worlds of `worlds.py`. Each run is `higl train --goal none` in a folder
of its own, which continues if it is interrupted. Then its policy is measured zero-shot:

    explored   the share of the free squares of a maze that training visited; of a key-and-door world, of the far room
    goals      success on goals over the whole task: a grid of goals, or random goals of a world
    test       success on the goals of the test environment, in 100 episodes

Each run adds a JSON line to `--out`; runs that the file holds already are not repeated.

    frontier, uniform, straight, random   HIGL with this `landmarks.explore`
    hrac, hiro                            with random goals
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from time_to_solved import environment, read_lines, task_words
from worlds import WORLDS, KeyDoor, world_steps

ROOT = Path(__file__).parents[1]
EXPLORE = ("frontier", "uniform", "straight", "random")
METHODS = (*EXPLORE, "hrac", "hiro")
STEPS = 100_000

Line = dict[str, Any]


def key(line: Line) -> tuple[Any, ...]:
    """Return what tells two runs apart."""
    return line["task"], line["method"], line["seed"], line["steps"]


def method_words(method: str) -> list[str]:
    """Return the settings of a method."""
    return ["--landmarks.explore", method] if method in EXPLORE else ["--algo", method]


def far_room(world: KeyDoor, cells: np.ndarray, side: np.ndarray) -> float:
    """Return the share of the far room's squares that are among visited cells of the goal space [N, 3].

    A square belongs to the room if its centre does; the side of a cell is `side` [3].
    """
    low, high = world.door[2], world.size[0]

    def within(centres: np.ndarray) -> np.ndarray:
        x, y = centres.T[:2]
        return (x > low) & (x <= high) & (y >= 0.0) & (y <= world.size[1])

    columns, rows = (np.arange(int(size / unit) + 1) for size, unit in zip(world.size, side[:2], strict=True))
    free = within(np.array([(x, y) for x in columns for y in rows]) * side[:2]).sum()
    seen = np.unique(cells[:, :2], axis=0)
    return float(within(seen * side[:2]).sum() / free)


def explored(task: str, folder: Path) -> float | None:
    """Return how much a run has explored; None where nothing tells what is free."""
    from higl.run.checkpoint import Checkpoints
    from higl.run.files import CHECKPOINTS
    from higl.run.reading import last_metric, read_config

    world = WORLDS[task]("test") if task in WORLDS else None
    if not isinstance(world, KeyDoor):
        return last_metric(folder, "explored_share")
    loaded, config = Checkpoints(folder / CHECKPOINTS).load(sys.exit), read_config(folder)
    assert loaded is not None, f"{folder} has no checkpoint"
    side = config.adjacency.cell * np.broadcast_to(config.goal_unit, (3,))
    return far_room(world, loaded[0]["matrix.cells"], side)


def all_explored_after(folder: Path) -> int | None:
    """Return the steps after which a run had visited every free square of its maze; None: it had not."""
    from higl.run.reading import MetricsTail

    rows = MetricsTail(folder).rows()
    return next((int(row["step"]) for row in rows if row.get("explored_share", 0.0) >= 1.0), None)


def higl(args: argparse.Namespace, *words: Any) -> str:
    """Run a command of higl in a process of its own and return what it prints."""
    command = [sys.executable, "-m", "higl", *map(str, words), "--cores", *map(str, args.cores)]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"no_goal.py: `higl {' '.join(map(str, words))}` ended with code {done.returncode}")
    return done.stdout


def run(args: argparse.Namespace, task: str, method: str, seed: int, steps: int) -> Line:
    """Train and measure."""
    folder = args.runs / f"{task}-{method}-{seed}"
    told = [*method_words(method), "--seed", seed, "--steps", steps, "--out", folder, "--resume", "--quiet"]
    higl(args, "train", *task_words(task), "--goal", "none", *told)
    over_all = ["--env", f"worlds:worlds/{task}-v0"] if task in WORLDS else ["--goals", "grid"]
    picture = ["-o", folder / "goals.png", "--json", "--trust"]
    goals = json.loads(higl(args, "eval", folder, *over_all, *picture))
    test = json.loads(higl(args, "eval", folder, "--json", "--trust"))
    line = {"task": task, "method": method, "seed": seed, "steps": steps, "explored": explored(task, folder)}
    line |= {"all_after": all_explored_after(folder)}
    return line | {"goals": goals["success"], "goal_episodes": goals["episodes"], "test": test["success"]}


def table(lines: Sequence[Line]) -> str:
    """Return a Markdown table with a row for each run."""
    rows = [
        "| task | method | seed | steps | explored | all after | goals | test |",
        "|---|---|---|---|---|---|---|---|",
    ]
    order = {method: place for place, method in enumerate(METHODS)}
    for line in sorted(lines, key=lambda line: (line["task"], line["steps"], order[line["method"]], line["seed"])):
        share = "-" if line["explored"] is None else f"{line['explored']:.0%}"
        missed = "never" if line["explored"] is not None and line["explored"] < 1.0 else "-"
        after = missed if line.get("all_after") is None else f"{line['all_after']:,}"
        cells = [line["task"], line["method"], line["seed"], f"{line['steps']:,}", share, after]
        rows.append(f"| {' | '.join(map(str, cells))} | {line['goals']:.0%} | {line['test']:.0%} |")
    return "\n".join(rows)


def read_arguments() -> argparse.Namespace:
    lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=lines)
    parser.add_argument("tasks", nargs="*", default=["point-maze"], help="tasks and worlds; not given: point-maze")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*EXPLORE, "hrac"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[300, 301])
    parser.add_argument("--steps", type=int, help=f"steps of each run; not given: {STEPS:,}, or those of a world")
    parser.add_argument("--cores", nargs="+", type=int, default=[0], help="cores to run on")
    parser.add_argument("--runs", type=Path, default=Path("runs/no-goal"), help="folder for the run folders")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/no_goal.jsonl", help="a line per run")
    parser.add_argument("--table", action="store_true", help="only print the table")
    return parser.parse_args()


def main(args: argparse.Namespace) -> None:
    wanted: list[Line] = [
        {"task": task, "method": method, "seed": seed}
        | {"steps": args.steps or (world_steps(task) if task in WORLDS else STEPS)}
        for task in args.tasks
        for seed in args.seeds
        for method in args.methods
    ]
    for each in [] if args.table else wanted:
        if key(each) in map(key, read_lines(args.out)):
            continue
        print("{method} on {task}, seed {seed}, {steps:,} steps".format(**each), file=sys.stderr)
        line = run(args, **each)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        with args.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
    print(table(read_lines(args.out)))


if __name__ == "__main__":
    main(read_arguments())
