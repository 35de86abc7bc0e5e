"""Make an environment through Gymnasium, act at random in it, and say what happened."""

import gymnasium
import numpy as np

import higl.envs


def main() -> None:
    """Roll out one episode of each of two tasks."""
    gymnasium.register_envs(higl.envs)  # the import has made the ids known; this says that it is used
    for name in ("higl/PointMaze-v0", "higl/AntMazeU-v0"):
        env = gymnasium.make(name, reward="dense", mode="test")
        env.action_space.seed(0)
        observation, _ = env.reset(seed=0)
        start, goal = observation["achieved_goal"], observation["desired_goal"]
        total, steps, ended = 0.0, 0, False
        while not ended:
            observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
            total, steps, ended = total + float(reward), steps + 1, terminated or truncated
        end = observation["achieved_goal"]
        print(
            f"{name}: {steps} random steps from {np.round(start, 1)} to {np.round(end, 1)}, "
            f"goal {np.round(goal, 1)}, return {total:.0f}, success: {bool(info['is_success'])}"
        )
        env.close()


if __name__ == "__main__":
    main()
