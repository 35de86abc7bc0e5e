"""Time a policy that acts alone, as on a robot: starting a process, one action, a new subgoal, a batch.

`python benchmarks/acting.py [POLICY]`; default: the trained ant. It prints the least and the median, by the clock
and of processor time, which other programs disturb less; OPENBLAS_NUM_THREADS=1 keeps NumPy on one core.
Observations are random, so a map is asked for goals that it does not know: the slowest case.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from time import perf_counter, process_time

import numpy as np

import higl

STARTS, BATCH = 9, 100
ACTIONS = {"one observation": 2_000, f"a batch of {BATCH}": 200}
START = "import sys, higl; higl.load_policy(sys.argv[1])"


def start_seconds(path: str) -> np.ndarray:
    """Return how long each of several processes takes to start and load the policy: clock, processor [N, 2]."""
    found = []
    for _ in range(STARTS):
        began, used = perf_counter(), _used_by_children()
        subprocess.run([sys.executable, "-c", START, path], check=True)
        found.append((perf_counter() - began, _used_by_children() - used))
    return np.array(found)


def _used_by_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def action_seconds(path: str, actions: int, batch: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return how long each of many actions takes (clock, processor [N, 2]), and which had new subgoals [N]."""
    policy = higl.load_policy(path)
    sizes = {"observation": policy.spaces.observation, "achieved_goal": policy.spaces.goal}
    if policy.config.observe_achieved:
        sizes["observation"] -= policy.spaces.goal
    sizes["desired_goal"] = policy.spaces.goal
    rng = np.random.default_rng(0)
    state, found, renewed = None, np.empty((actions, 2)), np.empty(actions, bool)
    for place in range(actions):
        observation = {name: rng.normal(size=(*batch, size)) for name, size in sizes.items()}
        began, used = perf_counter(), process_time()
        _, state = policy.predict(observation, state)
        found[place] = perf_counter() - began, process_time() - used
        renewed[place] = np.any(state.begins)
    return found, renewed


def in_words(seconds: np.ndarray, scale: float, unit: str, digits: int) -> str:
    """Return the least and the median of times [N, 2]."""
    numbers = scale * np.concatenate([seconds.min(axis=0), np.median(seconds, axis=0)])
    least, used, median, usual = (f"{number:.{digits}f} {unit}" for number in numbers)
    return f"{least}, median {median} (processor: {used}, {usual})"


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else "ant-maze-u"
    print(f"start a process and load the policy: {in_words(start_seconds(path), 1.0, 's', 2)}")
    for (name, actions), batch in zip(ACTIONS.items(), ((), (BATCH,)), strict=True):
        seconds, renewed = action_seconds(path, actions, batch)
        for what, part in (("between subgoals", seconds[~renewed]), ("with a new subgoal", seconds[renewed])):
            if len(part):
                print(f"{name}, {what}: {in_words(part, 1e6, 'us', 0)}")


if __name__ == "__main__":
    main()
