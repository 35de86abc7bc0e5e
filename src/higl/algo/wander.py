"""Exploring a walked map without a goal (`goal = "none"`; not in the paper).

A `Wanderer` leads a training episode to pseudo final goals of its own choice: landmarks at the frontier of the map. It
goes there along the map, roams outward from there, and then chooses the next one. Now and then it returns to any known
landmark instead, so that the low level keeps practising known ways. It reads neither the desired goal nor the reward.

`explore` names the rule; all but the first are baselines:

    frontier   few visits, a short walked way, few failures
    uniform    any landmark that can be reached, each as likely
    straight   as frontier, but straight there instead of along the map
    random     no landmarks: every segment gets a random subgoal (`Policy.random_subgoal`)

Imports no JAX, like `walked.py`.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from higl.algo.frontier import STRAIGHT, familiarity, pseudo_goal
from higl.algo.walked import Chart, Walker
from higl.settings.config import Explore

# Share of the pseudo goals that are any known landmark, from which it does not roam.
_RETURNING = 0.25
# Segments of roaming.
_ROAMING = 12
# Failures that a pseudo goal counts as if it was not reached.
_FAILURE = 5.0
# It gives up after this many times the segments that a good body needs, and a few more.
_PATIENCE, _MORE = 3.0, 5
# Noise on stops, in units.
_NOISE = 0.3


class Wanderer(Walker):
    """Leads one training episode without a goal, from one pseudo goal to the next."""

    def __init__(self, chart: Chart, period: int, explore: Explore):
        super().__init__(chart, period)
        self.explore = explore
        self.familiar = familiarity(chart.visits, chart.start, chart.end)
        self.returning = False
        self.left = 0
        """Segments until it gives up the pseudo goal."""

    def _choose(
        self, achieved: np.ndarray, desired: np.ndarray, rng: np.random.Generator | None
    ) -> tuple[int, np.ndarray]:
        """Return the next landmark on the way (-1: none) and the target of the next segment [G]."""
        assert rng is not None, "only training wanders, and training explores"
        way, before = self.roads.ways(self.node)
        self._aim(achieved, way, rng)
        if self.roaming:
            return -1, self._roam(achieved, None, rng, goalward=0.0)
        last = self.node if self.explore == "straight" else self.frontier
        hop, target = self._stop(achieved, self.chart.points[self.frontier], last, before)
        return hop, target + rng.normal(0.0, _NOISE, achieved.shape)

    def _aim(self, achieved: np.ndarray, way: np.ndarray, rng: np.random.Generator) -> None:
        """Keep the pseudo goal, begin to roam where it is reached, or choose the next one."""
        if self.frontier >= 0 and self.left == 0:
            self.vain = self.vain.copy()
            self.vain[self.frontier] += _FAILURE
            self.frontier = -1
        if self.frontier < 0 and not self.roaming:
            self._choose_next(achieved, way, rng)
        if self.frontier == self.node:
            self.frontier, self.roaming = -1, STRAIGHT if self.returning else _ROAMING
        self.left -= 1

    def _choose_next(self, achieved: np.ndarray, way: np.ndarray, rng: np.random.Generator) -> None:
        self.returning = bool(rng.random() < _RETURNING)
        if self.explore == "straight":
            way = np.linalg.norm(self.chart.points - achieved, axis=1) / self.chart.speed
        if self.returning or self.explore == "uniform":
            self.frontier = int(rng.choice(np.flatnonzero(np.isfinite(way))))
        else:
            self.frontier = pseudo_goal(self.familiar, way, self.vain, _ROAMING * self.period, rng)
        # A segment ends after a period, or on arrival at a stop about one unit away.
        segments = way[self.frontier] * max(1 / self.period, float(self.chart.speed))
        self.left = ceil(_PATIENCE * segments) + _MORE
