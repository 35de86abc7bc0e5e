"""`snapshots/STEP.npz`: landmarks and evaluation paths at some evaluations of a run, for the figures."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import gymnasium
import numpy as np

from higl.algo.episodes import Episode
from higl.algo.learner import Learner
from higl.run.files import replace_file
from higl.run.snapshots import take_snapshot

MAX_KEPT = 40


class SnapshotStore:
    """The snapshots of one run: all of them at first, later every second, every fourth, and so on."""

    def __init__(self, folder: Path):
        self.folder = folder

    def take(self, learner: Learner, env: gymnasium.Env, episodes: list[Episode]) -> None:
        """Write a snapshot of a learner and its evaluation. Does not change the run's randomness."""
        arrays = {
            "eval_paths": padded_paths([episode.achieved for episode in episodes]),
            "eval_success": np.array([episode.succeeded for episode in episodes]),
            "eval_goals": np.stack([episode.desired[0] for episode in episodes]),
        }
        arrays |= take_snapshot(learner, env, episodes[0])
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **arrays)
        self.folder.mkdir(exist_ok=True)
        replace_file(self.folder / f"{learner.steps:012d}.npz", content.getvalue())
        self._thin_out(learner.steps, learner.config.evaluation.every)

    def cut(self, step: int) -> None:
        """Remove the snapshots after a step: the resumed run takes them again."""
        for path in self.paths():
            if int(path.stem) > step:
                path.unlink()

    def paths(self) -> list[Path]:
        """Return the files, oldest first."""
        return sorted(path for path in self.folder.glob("*.npz") if path.stem.isdecimal())

    def _thin_out(self, step: int, every: int) -> None:
        """Keep the newest, and the first of each of at most `MAX_KEPT` equal parts of the run so far.

        Which ones are kept depends on their steps alone, so that an interrupted run keeps the same ones.
        """
        part = every
        while step // part >= MAX_KEPT:
            part *= 2
        paths = self.paths()
        for before, path in pairwise(paths[:-1]):
            if int(path.stem) // part == int(before.stem) // part:
                path.unlink()


def padded_paths(paths: list[np.ndarray]) -> np.ndarray:
    """Stack paths [T + 1, G] of different lengths, the shorter ones ending in NaN: [E, T + 1, G]."""
    longest = max(len(path) for path in paths)
    stacked = np.full((len(paths), longest, paths[0].shape[1]), np.nan, np.float32)
    for row, path in zip(stacked, paths, strict=True):
        row[: len(path)] = path
    return stacked
