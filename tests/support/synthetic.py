"""Small synthetic run folders for tests: they look like those of training and are marked as synthetic."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from higl.envs.maps import Maze
from higl.envs.tasks import find_task
from higl.run.files import EVALUATION_COLUMNS, FORMAT
from higl.settings.config import Config
from higl.settings.layers import to_toml

STEPS = 100_000
EVERY = 5_000
EPISODE = 500

# Final success rate of each algorithm, and the share of the run at which it has reached half of it.
_SKILL = {"higl": (0.95, 0.35), "hrac": (0.5, 0.6), "hiro": (0.2, 0.75)}


def synthetic_run(folder: Path, task: str = "point-maze", algo: str = "higl", seed: int = 0, **options) -> Path:
    """Write a run folder.

    Options: `steps` (that the run has done), `status`, `snapshots` (number of them), `settings` (of the `Config`),
    `facts` (more of `run.json`).
    """
    steps = options.get("steps", STEPS)
    rng = np.random.default_rng([seed, len(task), len(algo)])
    folder.mkdir(parents=True)
    status = options.get("status", "finished")
    asked = steps if status == "finished" else STEPS
    config = replace(Config(task=task, algo=algo, seed=seed, steps=asked), **options.get("settings", {}))
    (folder / "config.toml").write_text(to_toml(config))
    (folder / "run.json").write_text(json.dumps(_facts(status, steps) | options.get("facts", {}), indent=1))
    _write_metrics(folder / "metrics.jsonl", algo, steps, rng)
    _write_evaluations(folder / "eval.csv", algo, steps, rng)
    _write_snapshots(folder / "snapshots", task, algo, steps, options.get("snapshots", 8), rng)
    return folder


def _facts(status: str, steps: int) -> dict:
    start = {
        "started": "2026-01-01T00:00:00Z", "from_step": 0, "host": "a-host", "process": 1, "system": "Linux",
        "processor": "a processor", "cores": 1, "device": "cpu (cpu)", "python": "3.11.2", "commit": "0" * 40,
        "packages": {"higl": "0.1.0", "jax": "0.10.0", "numpy": "2.4.0", "mujoco": "4.0.0"},
        "command": ["/somewhere/higl", "train", "a-task"],
    }  # fmt: skip
    return {
        "format": FORMAT, "synthetic": True, "created": start["started"], "updated": "2026-01-01T02:00:00Z",
        "status": status, "saved_step": steps, "starts": [start],
    }  # fmt: skip


def success_rate(algo: str, share: float) -> float:
    """Return the success rate that a synthetic run has after a share of its steps."""
    ceiling, onset = _SKILL[algo]
    return ceiling / (1 + np.exp(-18 * (share - onset)))


def _write_metrics(path: Path, algo: str, steps: int, rng: np.random.Generator) -> None:
    clock, lines = 0.0, []
    for episode in range(1, steps // EPISODE + 1):
        share = episode * EPISODE / STEPS
        first = 20.0 if episode == 1 else 0.0
        seconds = {"collect": 0.5, "remember": 0.02, "low": 3.0 + first}
        seconds |= {"higl": {"high": 0.9, "novelty": 0.2}, "hrac": {"high": 0.4}, "hiro": {"high": 0.3}}[algo]
        values = {
            "episode/success": float(rng.random() < success_rate(algo, share)),
            "low/progress": 1.5 * (1 - np.exp(-5 * share)) + rng.normal(0, 0.1),
            "low/progress_share": 0.6 * (1 - np.exp(-5 * share)) + rng.normal(0, 0.05),
            "low/subgoal_distance": 3.0 + rng.normal(0, 0.2),
            "low/critic_loss": 2.0 * np.exp(-4 * share) + 0.2 + 0.1 * rng.random(),
            "high/critic_loss": 1.0 * np.exp(-2 * share) + 0.3 + 0.1 * rng.random(),
        }
        if algo == "higl":
            values |= {"high/landmark_loss": 0.5 * np.exp(-3 * share), "novelty/loss": 1e-3 * np.exp(-3 * share)}
            values |= {"high/selected_coverage": 0.5, "high/selected_novelty": 0.3, "high/selected_goal": 0.2}
        clock += sum(seconds.values()) + 0.1
        values |= {f"seconds/{stage}": taken for stage, taken in seconds.items()}
        lines.append({"step": episode * EPISODE, "episode": episode, "time": round(clock, 3), **values})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _write_evaluations(path: Path, algo: str, steps: int, rng: np.random.Generator) -> None:
    rows = [",".join(EVALUATION_COLUMNS)]
    for step in range(EVERY, steps + 1, EVERY):
        success = rng.binomial(5, success_rate(algo, step / STEPS)) / 5
        reached = "" if success == 0 else f"{300 - 100 * step / STEPS:.1f}"
        rows.append(
            f"{step},{step * 0.01:.1f},5,{success},{success / 2},"
            f"{-500 + 200 * success},{reached},{20 + 10 * success:.2f}"
        )
    path.write_text("\n".join(rows) + "\n")


# --- Snapshots ------------------------------------------------------------------------------------------------------


def _write_snapshots(folder: Path, task: str, algo: str, steps: int, count: int, rng: np.random.Generator) -> None:
    folder.mkdir()
    for number in range(1, count + 1):
        step = EVERY * round(number * steps / count / EVERY)
        arrays = synthetic_snapshot(task, algo, step, rng)
        np.savez_compressed(folder / f"{step:012d}.npz", **arrays)


def synthetic_snapshot(task: str, algo: str, step: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return a snapshot of a run; later ones have explored more of the goal space."""
    share = step / STEPS
    found = find_task(task)
    route = _route(task)
    reach = route[: max(2, int(len(route) * min(1.0, 0.15 + share)))]
    goal = found.test_goal.sample(np.random.default_rng(0))
    visited = reach[(len(reach) * rng.random(600) ** 1.5).astype(int)] + _noise(task, rng, 600)
    reached = rng.random(5) < success_rate(algo, share)
    paths = np.full((5, 120, len(goal)), np.nan)
    for path, success in zip(paths, reached, strict=True):
        points = route if success else reach[: max(2, int(len(reach) * rng.uniform(0.3, 0.9)))]
        length = int(rng.integers(60, 120))
        picked = points[np.linspace(0, len(points) - 1, length).astype(int)]
        path[:length] = picked + np.cumsum(0.15 * _noise(task, rng, length), axis=0) * 0.5
    arrays = {
        "step": step, "visited": visited, "radius": found.radius, "state": route[0], "goal": goal,
        "subgoal": reach[len(reach) // 4], "subgoals": reach[:: max(1, len(reach) // 12)], "planning": int(share > 0.3),
        "eval_paths": paths, "eval_success": reached, "eval_goals": np.tile(goal, (5, 1)),
        "walls": _walls(found), **(_landmarks(visited, reach, route[0], goal) if algo == "higl" else {}),
    }  # fmt: skip
    kinds = {name: np.asarray(value) for name, value in arrays.items()}
    return {n: v.astype(np.float32 if v.dtype == np.float64 else v.dtype) for n, v in kinds.items()}


def _landmarks(visited: np.ndarray, reach: np.ndarray, state: np.ndarray, goal: np.ndarray) -> dict[str, np.ndarray]:
    chosen = [0]
    while len(chosen) < 20:
        chosen.append(int(np.argmax(np.min(np.linalg.norm(visited[:, None] - visited[chosen], axis=2), axis=1))))
    coverage = visited[chosen]
    novelty = visited[np.argsort(np.linalg.norm(visited - reach[-1], axis=1))[:60:3]]
    nodes = np.concatenate([state[None], coverage, novelty, goal[None]])
    apart = np.linalg.norm(nodes[:, None] - nodes, axis=2) + 1e6 * np.eye(len(nodes))
    edges = np.stack([np.repeat(np.arange(len(nodes)), 4), np.argsort(apart, axis=1)[:, :4].ravel()], axis=1)
    along = np.argsort(np.linalg.norm(nodes[:, None] - reach[:: max(1, len(reach) // 6)], axis=2), axis=0)[0]
    path = list(dict.fromkeys([0, *along.tolist(), len(nodes) - 1]))
    offset = nodes[path[1]] - state
    return {
        "coverage": coverage, "novelty": novelty, "novelty_score": np.linspace(1, 0.1, len(novelty)), "nodes": nodes,
        "edges": edges.astype(np.int32), "edge_weights": apart[edges[:, 0], edges[:, 1]],
        "path": np.array(path, np.int32), "selected": nodes[path[1]],
        "pseudo_landmark": state + 2.0 * offset / max(np.linalg.norm(offset), 1e-6),
    }  # fmt: skip


def _route(task: str) -> np.ndarray:
    """Return a path from the start to the goal, in small steps."""
    corners = {
        "reacher": [(0.6, -0.2, 0.1), (0.3, 0.1, 0.2), (0.0, 0.25, 0.0)],
        "pusher": [(0.8, -0.6, 0, 0.6, -0.3, -0.27), (0.6, -0.3, -0.2, 0.6, -0.3, -0.27), (0.45, -0.05, -0.32) * 2],
    }.get(task, [(0, 0), (8, 0), (8, 8), (0, 8)])
    if task == "ant-maze-w":
        corners = [(0, 0), (13, 1), (13, 8), (2, 8)]
    points = np.array(corners, float)
    return np.concatenate([np.linspace(a, b, 60) for a, b in itertools.pairwise(points)])


def _noise(task: str, rng: np.random.Generator, count: int) -> np.ndarray:
    size = 0.04 if task in ("reacher", "pusher") else 0.6
    return np.clip(rng.normal(0, size, (count, _route(task).shape[1])), -2 * size, 2 * size)


def _walls(task) -> np.ndarray:
    if task.map is None:
        return np.zeros((0, 4))
    return np.array(Maze(task.map, task.cell).wall_boxes())
