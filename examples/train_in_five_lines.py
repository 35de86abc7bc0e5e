"""The library in five lines, on one of the paper's tasks.

python examples/train_in_five_lines.py --steps 200000
"""

import argparse

import higl


def main() -> None:
    """Train on the point maze and say how well it does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--episodes", type=int, default=20)
    options = parser.parse_args()

    agent = higl.HIGL("higl/PointMaze-v0", reward="sparse", seed=0)
    agent.learn(options.steps, callback=lambda metrics: print(metrics["step"], metrics.get("evaluation/success")))
    print(higl.evaluate(agent, episodes=options.episodes))
    agent.save("point-maze.safetensors")


if __name__ == "__main__":
    main()
