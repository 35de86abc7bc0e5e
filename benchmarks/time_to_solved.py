"""Wall time and steps until a task is solved, on one core, over several seeds.

    .venv/bin/python benchmarks/time_to_solved.py                                     # Ant Maze U and Point Maze
    .venv/bin/python benchmarks/time_to_solved.py --tasks point-maze lift --peer      # beside SAC with hindsight replay
    .venv/bin/python benchmarks/time_to_solved.py --tasks ant-maze-u --seeds 200 201 -- --precision auto
    .venv/bin/python benchmarks/time_to_solved.py --table

A task is solved at the last of the first five evaluations in a row with a mean success of 90%. Time counts from the
start of `higl train --stop-at 0.9`: imports, compilation, learning and evaluations. Tasks are names that `higl train`
takes, and the worlds of `worlds.py`. What follows `--` are settings of `higl train`.

Each run adds a JSON line to `--out`, and runs that the file holds already are not repeated: use a file of its own for
each version of the code. An interrupted run continues from its last checkpoint, and its time then lacks the start.
Before and after each run the rate of fp32 matrix products is measured on the same core, so that times of different
machines can be compared: seconds times rate are TFLOP-equivalents.

With `--peer`, SAC of Stable-Baselines3 (`make peers`, settings as in `peers.py`) learns the same tasks on the same
core. It is evaluated as often, in as many episodes of the same test environment.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from peers import make_peer, versions
from worlds import WORLDS, world_steps

ROOT = Path(__file__).parents[1]
TASKS = ("ant-maze-u", "point-maze")
PEER_TASKS = ("point-maze", *WORLDS)
"""Tasks that the peer can learn without goals or rewards of its own."""
SHARE, EVALUATIONS = 0.9, 5
STEPS = 300_000

Line = dict[str, Any]


# --- What is measured -------------------------------------------------------------------------------------------------


def solved_row(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the evaluation at which a task is solved, as `--stop-at` decides it; None if it is not."""
    from higl.run.stopping import StopAtSuccess

    stop = StopAtSuccess(SHARE, EVALUATIONS)
    return next((row for row in rows if not stop({"evaluation/success": row["success"]})), None)


def key(line: Line) -> tuple[Any, ...]:
    """Return what tells two runs apart."""
    return line["task"], line["method"], tuple(line["settings"]), line["seed"], line["steps"]


def read_lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def median(values: Sequence[float | None]) -> float:
    """Return the median, where None (not solved) is larger than any number."""
    return statistics.median(math.inf if value is None else value for value in values)


def summary(lines: Sequence[Line]) -> list[Line]:
    """Return a row for each task, method and settings: medians over seeds."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["task"], line["method"], tuple(line["settings"]), line["steps"]), []).append(line)
    return [
        {
            "task": task,
            "method": method,
            "settings": " ".join(settings),
            "solved": f"{sum(line['step'] is not None for line in group)} of {len(group)}",
            "step": median([line["step"] for line in group]),
            "seconds": median([line["seconds"] for line in group]),
            "tflop": median([_tflop(line) for line in group]),
            "rate": statistics.median(rate for line in group for rate in line["gflops"]),
        }
        for (task, method, settings, _), group in groups.items()
    ]


def _tflop(line: Line) -> float | None:
    return None if line["seconds"] is None else line["seconds"] * statistics.mean(line["gflops"]) / 1e3


def table(lines: Sequence[Line]) -> str:
    """Return the summary as a Markdown table."""
    rows = [
        "| task | method | settings | solved | steps, median | seconds, median | TFLOP-equivalents | GFLOP/s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in summary(lines):
        numbers = [_number(row[name]) for name in ("step", "seconds", "tflop", "rate")]
        rows.append(f"| {' | '.join([row['task'], row['method'], row['settings'], row['solved'], *numbers])} |")
    return "\n".join(rows)


def _number(value: float) -> str:
    return "not reached" if math.isinf(value) else f"{value:,.0f}"


# --- Runs -------------------------------------------------------------------------------------------------------------


def train_command(task: str, seed: int, steps: int, core: int, folder: Path, settings: Sequence[str]) -> list[str]:
    """Return the command that trains a task until it is solved, or continues to do so."""
    words: list[Any] = [
        sys.executable,
        "-m",
        "higl",
        "train",
        *task_words(task),
        *settings,
        "--seed",
        seed,
        "--steps",
        steps,
    ]
    words += ["--stop-at", SHARE, "--cores", core, "--out", folder, "--resume", "--quiet"]
    return [str(word) for word in words]


def task_words(task: str) -> list[str]:
    """Return a task as `higl train` takes it: a world has an environment of its own for its far goal."""
    return [f"worlds:worlds/{task}-v0", "--test-env", f"worlds:worlds/{task}-test-v0"] if task in WORLDS else [task]


def environment() -> dict[str, str]:
    """Return the variables of a run's process: one thread, and the worlds can be imported."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    paths = [str(ROOT / "src"), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    return os.environ | threads | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_higl(args: argparse.Namespace, task: str, seed: int, steps: int) -> Line:
    """Train until a task is solved, in a process of its own; return what `measured` adds to a line."""
    from higl.run.reading import is_run, read_evaluations, read_facts

    folder = args.runs / "-".join([task.replace("/", "-"), *(word.strip("-") for word in args.settings), str(seed)])
    resumed, start = is_run(folder), time.perf_counter()
    done = subprocess.run(train_command(task, seed, steps, args.core, folder, args.settings), env=environment())
    if done.returncode:
        sys.exit(f"time_to_solved.py: {task}, seed {seed} ended with code {done.returncode}; the same command goes on")
    # What the run's own clock does not count: imports, and the end of the process.
    start_up = 0.0 if resumed else time.perf_counter() - start - read_facts(folder)["seconds"]
    row = solved_row(read_evaluations(folder).rows)
    reached = {"step": None, "seconds": None} if row is None else {"step": row["step"], "seconds": row["time"]}
    if row is not None:
        reached["seconds"] = round(row["time"] + start_up, 1)
    return reached | {"resumed": resumed, "versions": versions("higl")}


def run_peer(args: argparse.Namespace, task: str, seed: int, steps: int) -> Line:
    """Train the peer until a task is solved, in a process with its own Python."""
    every, episodes = evaluation_plan(task, steps)
    words = [args.peer_python, __file__, "--here", "--tasks", task, "--seeds", seed, "--steps", steps]
    words += ["--core", args.core, "--every", every, "--episodes", episodes]
    done = subprocess.run([str(word) for word in words], env=environment(), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"time_to_solved.py: the peer on {task}, seed {seed} ended with code {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def evaluation_plan(task: str, steps: int) -> tuple[int, int]:
    """Return the steps between two evaluations of a run of higl, and their episodes."""
    from higl.settings.config import Config
    from higl.settings.derive import derive_schedule
    from higl.settings.layers import apply
    from higl.settings.presets import preset

    config: Config = apply(preset(task), {"steps": steps})
    config, _ = derive_schedule(config, ())
    return config.evaluation.every, config.evaluation.episodes


def peer_here(args: argparse.Namespace) -> Line:
    """Train the peer in this process, and stop when the task is solved."""
    start = time.perf_counter()
    (task,), (seed,) = args.tasks, args.seeds
    agent, act = make_peer("sac", lambda: peer_env(task, "train"), seed, args.steps)
    test_env, rows = peer_env(task, "test"), []

    def after_step(*_: Any) -> bool:
        if agent.num_timesteps % args.every == 0:
            seeds = [1_000_000 * (seed + 1) + len(rows) * args.episodes + number for number in range(args.episodes)]
            success = statistics.mean(episode_success(test_env, act, each) for each in seeds)
            rows.append({"step": agent.num_timesteps, "time": time.perf_counter() - start, "success": success})
            print(f"  step {agent.num_timesteps:,}: success {success:.0%}", file=sys.stderr)
        return solved_row(rows) is None

    agent.learn(args.steps, callback=after_step)
    row = solved_row(rows)
    reached = (
        {"step": None, "seconds": None} if row is None else {"step": row["step"], "seconds": round(row["time"], 1)}
    )
    return reached | {"resumed": False, "versions": versions("sac")}


def peer_env(task: str, mode: str) -> Any:
    """Return the environment of a task for the peer."""
    if task in WORLDS:
        return WORLDS[task](mode)
    import gymnasium

    from higl.envs.tasks import find_task

    return gymnasium.make(f"higl.envs:{find_task(task).id}", mode=mode)


def episode_success(env: Any, act: Callable[..., tuple[Any, Any]], seed: int) -> bool:
    """Return whether any step of an episode without exploration succeeds."""
    (observation, _), state, ended, success = env.reset(seed=seed), None, False, False
    while not ended:
        action, state = act(observation, state)
        observation, _, terminated, truncated, info = env.step(action)
        ended, success = terminated or truncated, success or bool(info["is_success"])
    return success


# --- The command ------------------------------------------------------------------------------------------------------


def read_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), metavar="TASK")
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102, 103], metavar="SEED")
    parser.add_argument("--steps", type=int, help=f"longest run; not given: {STEPS:,}, or those of the world")
    parser.add_argument("--core", type=int, default=0, help="the core on which everything runs")
    parser.add_argument("--peer", action="store_true", help="SAC of Stable-Baselines3 beside it")
    parser.add_argument("--peer-python", type=Path, default=Path(".peers/bin/python"), help="made by `make peers`")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "time_to_solved.jsonl")
    parser.add_argument("--runs", type=Path, default=Path("runs/time-to-solved"), help="folder of the runs")
    parser.add_argument("--table", action="store_true", help="only print the table of --out")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # the peer's process
    for name in ("--every", "--episodes"):
        parser.add_argument(name, type=int, help=argparse.SUPPRESS)
    parser.add_argument("settings", nargs="*", help="settings of `higl train`, after `--`")
    args = parser.parse_args(words)
    if args.peer and (unknown := [task for task in args.tasks if task not in PEER_TASKS]):
        parser.error(f"--peer: it cannot learn {', '.join(unknown)}; tasks: {', '.join(PEER_TASKS)}")
    if args.peer and not args.here and not args.peer_python.exists():
        parser.error(f"{args.peer_python} does not exist: run `make peers`, or give --peer-python")
    if args.table and not args.out.exists():
        parser.error(f"--table: there is no file {args.out}")
    return args


def planned(args: argparse.Namespace) -> list[Line]:
    """Return the runs to make, each with what tells it apart; the peer follows higl seed by seed."""
    methods = [("higl", args.settings), *([("sac", [])] if args.peer else [])]
    return [
        {"task": task, "method": method, "settings": settings, "seed": seed, "steps": args.steps or longest(task)}
        for task in args.tasks
        for seed in args.seeds
        for method, settings in methods
    ]


def longest(task: str) -> int:
    return world_steps(task) if task in WORLDS else STEPS


def main(args: argparse.Namespace) -> None:
    if args.here:
        os.sched_setaffinity(0, [args.core])
        print(json.dumps(peer_here(args)))
        return
    if not args.table:
        measure_all(args)
    print(table(read_lines(args.out)))


def measure_all(args: argparse.Namespace) -> None:
    """Make the runs that the file does not hold yet, and add their lines to it."""
    known = {key(line) for line in read_lines(args.out)}
    missing = [line for line in planned(args) if key(line) not in known]
    if not missing:
        return
    from higl.run.process import prepare_process

    prepare_process([args.core])
    from higl.run.timing import PRODUCTS, ProductRate

    rate = ProductRate(*PRODUCTS, "fp32")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for line in missing:
        print(f"{line['method']} on {line['task']}, seed {line['seed']}", file=sys.stderr, flush=True)
        before = rate.measure()
        run = run_higl if line["method"] == "higl" else run_peer
        found = run(args, line["task"], line["seed"], line["steps"])
        gflops = [round(measured / 1e9, 1) for measured in (before, rate.measure())]
        with args.out.open("a") as file:
            file.write(json.dumps(line | found | {"gflops": gflops}) + "\n")


if __name__ == "__main__":
    main(read_arguments())
