"""Where to explore on a walked map: landmarks where little time was spent, and directions that lead outward.

Training explores with a final goal (`walked.Walker`) and without one (`wander.Wanderer`), by the same rules. None of
them is in the paper. Imports no JAX, like `walked.py`.
"""

from __future__ import annotations

import numpy as np

# Edges over which visits spread: time that was spent this near counts, too.
_EDGES = 4
# Failures that double the price of a landmark.
_DOUBT = 3.0
# Directions from which the outward one is chosen, and the share of directions that lead outward instead of anywhere.
_DIRECTIONS, _OUTWARD = 8, 0.5
# Segments in one direction, and the lengths of such a segment, in units.
STRAIGHT, _LENGTHS = 4, (0.7, 1.5)
# Spread in choosing a pseudo goal (of the logarithm of its price).
_SPREAD = 0.5


def familiarity(visits: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return how familiar each landmark of a map is, from visits [N] and walked edges (`start`, `end`: [E]): [N].

    Visits of other landmarks count once for each way of up to four edges that leads there, in either direction. So the
    landmarks in the middle of what is known are familiar, even those with few visits, and those at its rim are not.
    Nothing spreads through walls, or from a place without a key to the same place with it.
    """
    from scipy.sparse import csr_array

    pairs = np.unique(np.concatenate([np.stack([start, end]), np.stack([end, start])], axis=1), axis=1)
    joined = csr_array((np.ones(pairs.shape[1]), tuple(pairs)), shape=(len(visits), len(visits)))
    familiar = visits.astype(np.float64)
    for _ in range(_EDGES):
        familiar = visits + joined @ familiar
    return familiar


def pseudo_goal(
    familiar: np.ndarray, way: np.ndarray, vain: np.ndarray, roaming: float, rng: np.random.Generator
) -> int:
    """Draw the landmark that promises something new at the least price.

    The price is the product of what is known there (`familiar` [N]), the steps to go there and roam (`way` [N] and
    `roaming`), and how often segments failed there (`vain` [N]). It is multiplied by log-normal noise, so that episodes
    that start alike do not all choose the same one. Landmarks without a way to them are never chosen.
    """
    price = (1.0 + familiar) * (way + roaming) * (1.0 + vain / _DOUBT)
    return int(np.argmin(price * np.exp(rng.normal(0.0, _SPREAD, len(price)))))


def roaming_step(
    achieved: np.ndarray, points: np.ndarray | None, goal: np.ndarray | None, goalward: float, rng: np.random.Generator
) -> np.ndarray:
    """Draw what each segment of roaming in one direction adds to where a body is [G]: [G].

    The direction is that of the goal [G] with the probability `goalward`. Otherwise it is, half of the time, the one of
    eight that leads farthest from all landmarks `points` [N, G], and else a random one. Without points it is random.
    """
    turns = rng.normal(size=(_DIRECTIONS, len(achieved)))
    turns /= np.maximum(np.linalg.norm(turns, axis=1, keepdims=True), 1e-6)
    length, kind = rng.uniform(*_LENGTHS), rng.random()
    if goal is not None and kind < goalward:
        return length * (goal - achieved) / max(float(np.linalg.norm(goal - achieved)), 1e-6)
    if points is None or kind >= goalward + _OUTWARD * (1.0 - goalward):
        return length * turns[0]
    return length * turns[_emptiest(achieved + STRAIGHT * length * turns, points)]


def _emptiest(places: np.ndarray, points: np.ndarray) -> int:
    """Return which of some places [P, G] is farthest from all landmarks [N, G]."""
    away = np.linalg.norm(places[:, None] - points[None], axis=2)
    return int(np.argmax(away.min(axis=1)))
