"""Compare higl with the goal-conditioned learners of Stable-Baselines3 on small worlds.

    make peers                                                  # once: Stable-Baselines3 and PyTorch in .peers
    .venv/bin/python benchmarks/peers.py --worlds lift --methods higl sac --seeds 100 101 --cores 0
    .venv/bin/python benchmarks/peers.py --table runs/peers.jsonl

The worlds are those of `worlds.py` and `more_worlds.py`. All methods get the same training goals, the same number of
steps and one thread. Ten times in a run the policy is measured without exploration, on the far goal and on training
goals, in the same episodes for all methods. An episode succeeds if the goal is reached at any step.

Each run is a process of its own and adds one JSON line to `--out`. Runs that the file holds already are not repeated.

    higl        HIGL as a new user gets it: no settings are given
    sac, td3    the defaults of Stable-Baselines3 with hindsight replay (4 goals, "future"), learning from step 1,000
                on, because hindsight replay needs a whole episode; TD3 with action noise of 0.1, its default being none
    sac-tuned   SAC with what the RL Zoo uses for hindsight replay: learning rate 1e-3, discount 0.95, target update
                0.05, observations normalised
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from more_worlds import NEW_STEPS, NEW_WORLDS
from worlds import WORLDS as FIRST_WORLDS
from worlds import GoalWorld, world_steps

WORLDS = FIRST_WORLDS | NEW_WORLDS
METHODS = ("higl", "sac", "sac-tuned", "td3")
EVALUATIONS = 10
EPISODES = 20
FIRST_TEST_SEED = 1_000_000
"""Seed of the first test episode; far from the seeds of runs."""

Act = Callable[[dict[str, np.ndarray], Any], tuple[np.ndarray, Any]]
"""From a batch of observations and the policy's state (None at the start) to actions and the next state."""


@dataclass
class Curve:
    """Measures a policy as a run goes on, and counts the time of the rest."""

    world: str
    steps: int
    rows: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __post_init__(self) -> None:
        self._start_clock()

    def measure_if_due(self, step: int, act: Act) -> None:
        """Measure if another tenth of the steps is over."""
        if step * EVALUATIONS < self.steps * (len(self.rows) + 1) or len(self.rows) == EVALUATIONS:
            return
        self.seconds += time.perf_counter() - self._wall
        self.cpu_seconds += time.process_time() - self._cpu
        far, train = (success([WORLDS[self.world](mode) for _ in range(EPISODES)], act) for mode in ("test", "train"))
        self.rows.append({"step": step, "far": far, "train": train})
        print(f"  step {step:,}: far goal {far:.0%}, training goals {train:.0%}", file=sys.stderr)
        self._start_clock()

    def _start_clock(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()


def success(envs: list[GoalWorld], act: Act) -> float:
    """Return the share of episodes, one in each environment, in which the goal is reached at any step."""
    observations = [env.reset(seed=FIRST_TEST_SEED + number)[0] for number, env in enumerate(envs)]
    reached = np.zeros(len(envs), bool)
    state, ended = None, False
    while not ended:  # the episodes of a world are equally long
        batch = {name: np.stack([observation[name] for observation in observations]) for name in observations[0]}
        actions, state = act(batch, state)
        results = [env.step(action) for env, action in zip(envs, actions, strict=True)]
        observations = [result[0] for result in results]
        reached |= [result[4]["is_success"] for result in results]
        ended = results[0][3]
    return float(reached.mean())


def train_higl(world: str, seed: int, steps: int) -> Curve:
    """Train HIGL without any settings."""
    from higl import HIGL

    curve = Curve(world, steps)
    agent = HIGL(partial(WORLDS[world], "train"), seed=seed, verbose=False)
    agent.learn(steps, callback=lambda _: curve.measure_if_due(agent.steps, agent.predict))
    return curve


def make_peer(method: str, make_env: Callable[[], gymnasium.Env], seed: int, steps: int) -> tuple[Any, Act]:
    """Return an agent of Stable-Baselines3 with hindsight replay, and how it acts without exploration."""
    # Neither package is among higl's: this runs in an environment of its own.
    import torch  # ty: ignore[import-not-found]
    from stable_baselines3 import SAC, TD3, HerReplayBuffer  # ty: ignore[import-not-found]
    from stable_baselines3.common.noise import NormalActionNoise  # ty: ignore[import-not-found]
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # ty: ignore[import-not-found]

    torch.set_num_threads(1)
    env = DummyVecEnv([make_env])
    # A buffer of all steps learns the same as the default of a million, and is searched faster.
    options: dict[str, Any] = {"learning_starts": 1000, "buffer_size": steps}
    if method == "sac-tuned":
        env = VecNormalize(env, norm_reward=False)
        options |= {"learning_rate": 1e-3, "gamma": 0.95, "tau": 0.05}
    if method == "td3":
        size = env.action_space.shape[0]
        options["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, 0.1))
    agent = (TD3 if method == "td3" else SAC)(
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        seed=seed,
        device="cpu",
        **options,
    )

    def act(observation: dict[str, np.ndarray], state: Any) -> tuple[np.ndarray, Any]:
        if isinstance(env, VecNormalize):
            observation = env.normalize_obs(observation)
        return agent.predict(observation, state, deterministic=True)

    return agent, act


def train_peer(method: str, world: str, seed: int, steps: int) -> Curve:
    """Train an agent of Stable-Baselines3."""
    curve = Curve(world, steps)
    agent, act = make_peer(method, partial(WORLDS[world], "train"), seed, steps)

    def after_step(*_: Any) -> bool:
        curve.measure_if_due(agent.num_timesteps, act)
        return True

    agent.learn(steps, callback=after_step)
    curve.measure_if_due(agent.num_timesteps, act)
    return curve


def versions(method: str) -> dict[str, str]:
    packages = ("higl", "jax") if method == "higl" else ("stable-baselines3", "torch")
    return {package: importlib.metadata.version(package) for package in (*packages, "numpy", "gymnasium")}


def run_here(method: str, world: str, seed: int, steps: int) -> dict[str, Any]:
    """Train in this process and return the run's line."""
    curve = train_higl(world, seed, steps) if method == "higl" else train_peer(method, world, seed, steps)
    return {
        "world": world,
        "method": method,
        "seed": seed,
        "steps": steps,
        "evaluations": curve.rows,
        "seconds": round(curve.seconds, 1),
        "cpu_seconds": round(curve.cpu_seconds, 1),
        "versions": versions(method),
    }


def run_apart(args: argparse.Namespace, method: str, world: str, seed: int, steps: int) -> dict[str, Any]:
    """Train in a process with the method's Python and one thread, and return the run's line."""
    python = sys.executable if method == "higl" else args.peer_python
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    command = [python, __file__, "--here", "--worlds", world, "--methods", method, "--seeds", seed, "--steps", steps]
    if args.cores:
        command += ["--cores", *args.cores]
    done = subprocess.run([str(part) for part in command], env=os.environ | threads, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"peers.py: {method} on {world}, seed {seed} ended with code {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def read_runs(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the runs of a file by world, method, seed and steps."""
    lines = path.read_text().splitlines() if path.exists() else []
    runs = [json.loads(line) for line in lines if line.strip()]
    return {(run["world"], run["method"], run["seed"], run["steps"]): run for run in runs}


def table(runs: list[dict[str, Any]]) -> str:
    """Return a Markdown table with a row for each run; success in per cent at each evaluation."""
    lines = [
        "| world | method | seed | steps | far goal, % | training goals, % | seconds | CPU seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    order = {name: number for number, name in enumerate([*WORLDS, *METHODS])}
    for run in sorted(runs, key=lambda run: (order[run["world"]], order[run["method"]], run["steps"], run["seed"])):
        far, train = (" ".join(f"{100 * row[goals]:.0f}" for row in run["evaluations"]) for goals in ("far", "train"))
        cells = [run["world"], run["method"], run["seed"], f"{run['steps']:,}", far, train]
        cells += [f"{run['seconds']:.0f}", f"{run['cpu_seconds']:.0f}"]
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return "\n".join(lines)


def read_arguments() -> argparse.Namespace:
    lines = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=lines)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=["shelves", "key-door", "torque-arm", "lift"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["higl", "sac", "sac-tuned"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101])
    parser.add_argument("--steps", type=int, help="steps of each run; not given: those of the world")
    parser.add_argument("--cores", nargs="+", type=int, help="cores to run on; not given: any")
    parser.add_argument("--out", type=Path, default=Path("runs/peers.jsonl"), help="file that gets a line per run")
    parser.add_argument("--peer-python", type=Path, default=Path(".peers/bin/python"), help="made by `make peers`")
    parser.add_argument("--table", type=Path, metavar="FILE", help="only print the table of a file")
    parser.add_argument("--here", action="store_true", help="train one run in this process and print its line")
    args = parser.parse_args()
    if args.table and not args.table.exists():
        parser.error(f"--table: there is no file {args.table}")
    peers = not args.table and any(method != "higl" for method in args.methods)
    if peers and not args.here and not args.peer_python.exists():
        parser.error(f"{args.peer_python} does not exist: run `make peers`, or give --peer-python")
    return args


def main(args: argparse.Namespace) -> None:
    if args.table:
        print(table(list(read_runs(args.table).values())))
        return
    runs = [
        (method, world, seed, args.steps or NEW_STEPS.get(world) or world_steps(world))
        for seed in args.seeds
        for method in args.methods
        for world in args.worlds
    ]
    if args.here:
        if args.cores:
            os.sched_setaffinity(0, args.cores)
        print(json.dumps(run_here(*runs[0])))
        return
    for method, world, seed, steps in runs:
        if (world, method, seed, steps) in read_runs(args.out):
            print(f"{args.out} has {method} on {world}, seed {seed}", file=sys.stderr)
            continue
        print(f"{method} on {world}, seed {seed}, {steps:,} steps", file=sys.stderr)
        line = run_apart(args, method, world, seed, steps)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        with args.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
    print(table(list(read_runs(args.out).values())))


if __name__ == "__main__":
    main(read_arguments())
