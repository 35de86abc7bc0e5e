"""How much `env.step` of the ant maze costs beyond the `mj_step` calls it contains.

Both sides walk the same trajectories: a block of `env.step`, and from the same state the same torques through bare
`mj_step`. Blocks are short, alternate and are timed in processor time, so a busy machine slows both alike; the printed
ratio is the median of the blocks' ratios. Fails when it is above the limit.

    python benchmarks/env_step.py [--task ant-maze-u] [--blocks 160] [--steps 25]
"""

from __future__ import annotations

import argparse
import statistics
import time

import gymnasium
import mujoco
import numpy as np

from higl.envs import find_task, task_names
from higl.envs.base import GoalEnv

LIMIT = 1.15


def time_env(env: gymnasium.Env, actions: np.ndarray) -> float:
    step = env.step
    began = time.thread_time()
    for action in actions:
        step(action)
    return time.thread_time() - began


def time_mujoco(env: GoalEnv, actions: np.ndarray) -> float:
    model, data, frame_skip, step = env.model, env.data, env.frame_skip, mujoco.mj_step
    ctrl = data.ctrl
    began = time.thread_time()
    for action in actions:
        ctrl[:] = action
        step(model, data, frame_skip)
    return time.thread_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ant_mazes = [name for name in task_names() if find_task(name).body == "ant"]
    parser.add_argument("--task", default="ant-maze-u", choices=ant_mazes)
    parser.add_argument("--blocks", type=int, default=160)
    parser.add_argument("--steps", type=int, default=25)
    options = parser.parse_args()

    env = gymnasium.make(find_task(options.task).id)
    bare = env.unwrapped
    assert isinstance(bare, GoalEnv)
    env.reset(seed=0)
    env.action_space.seed(0)
    times = []
    for block in range(options.blocks):
        actions = np.array([env.action_space.sample() for _ in range(options.steps)])
        state = bare.get_state()
        # Either side goes first in every other block, lest one always find warmer caches.
        in_mujoco = time_mujoco(bare, actions) if block % 2 else 0.0
        bare.set_state(state)
        in_env = time_env(env, actions)
        reached = bare.get_state()
        bare.set_state(state)
        in_mujoco = in_mujoco or time_mujoco(bare, actions)
        bare.set_state(reached)
        times.append((in_env, in_mujoco))
    times = times[1:]  # the first block warms caches

    ratio = statistics.median(in_env / in_mujoco for in_env, in_mujoco in times)
    env_us, mujoco_us = (statistics.median(column) / options.steps * 1e6 for column in zip(*times, strict=True))
    print(
        f"{options.task}: env.step {env_us:.0f} us, its {bare.frame_skip} mj_step calls {mujoco_us:.0f} us, "
        f"ratio {ratio:.3f} (limit {LIMIT})"
    )
    if ratio > LIMIT:
        raise SystemExit(f"env.step costs {ratio:.3f} times its mj_step calls, more than {LIMIT}")


if __name__ == "__main__":
    main()
