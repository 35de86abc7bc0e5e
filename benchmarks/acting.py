"""Time a policy that acts alone, as on a robot: starting a process, one action, a new subgoal, a batch.

`python benchmarks/acting.py [POLICY]`; default: the trained ant. It prints the median and the 99th percentile.
"""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

import numpy as np

import higl

STARTS, ACTIONS, BATCH = 5, 5_000, 100
START = "import sys, higl; higl.load_policy(sys.argv[1])"


def start_seconds(path: str) -> list[float]:
    """Return how long each of several processes takes to start and load the policy."""
    found = []
    for _ in range(STARTS):
        began = perf_counter()
        subprocess.run([sys.executable, "-c", START, path], check=True)
        found.append(perf_counter() - began)
    return found


def action_seconds(path: str, batch: tuple[int, ...]) -> np.ndarray:
    """Return how long each of many actions takes."""
    policy = higl.load_policy(path)
    sizes = {"observation": policy.spaces.observation, "achieved_goal": policy.spaces.goal}
    if policy.config.observe_achieved:
        sizes["observation"] -= policy.spaces.goal
    sizes["desired_goal"] = policy.spaces.goal
    rng = np.random.default_rng(0)
    state, found = None, np.empty(ACTIONS)
    for place in range(ACTIONS):
        observation = {name: rng.normal(size=(*batch, size)) for name, size in sizes.items()}
        began = perf_counter()
        _, state = policy.predict(observation, state)
        found[place] = perf_counter() - began
    return found


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else "ant-maze-u"
    period = higl.load_policy(path).config.high.period
    starts = start_seconds(path)
    print(f"start a process and load the policy: {np.median(starts):.2f} s")
    for name, batch in (("one observation", ()), (f"a batch of {BATCH}", (BATCH,))):
        seconds = action_seconds(path, batch)
        renewed = np.arange(ACTIONS) % period == 0
        for what, part in (("between subgoals", seconds[~renewed]), ("with a new subgoal", seconds[renewed])):
            median, late = np.quantile(part, [0.5, 0.99]) * 1e6
            print(f"{name}, {what}: {median:.0f} us (99%: {late:.0f} us)")


if __name__ == "__main__":
    main()
