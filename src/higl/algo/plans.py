"""Along the map or straight: how an episode goes to its goal (`landmarks.graph = "walked"`; not in the paper).

A map leads around walls and through prerequisites. Where there are none, the straight line may be better, above all in
a goal space of many dimensions, for which a map has too few landmarks: an arm can push a puck straight to its target,
while the map takes the puck to be where it is not. Training shows which is better: half of its episodes choose
their stops as tests do, along the map or straight, and the record of those with a similar start and goal decides. (The
actions of all training episodes are noisy.)

Imports no JAX, so that a policy acts without it.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

# Share of the training episodes that explore.
_EXPLORING = 0.5
# Episodes that are remembered.
_REMEMBERED = 1_000
# The latest tries, of which the share that went straight is logged.
_LATEST = 50
# About so many tries are compared, those with the nearest start and goal. A try counts less by the second factor for
# each later one nearby.
_NEARBY, _FADING = 20, 0.95
# Successes and failures that each way starts with: the map leads until it has failed about four times more than it
# succeeded nearby, or the straight line has succeeded more often.
_PRIOR = {False: (2.0, 1.0), True: (1.0, 2.0)}


class Plan(IntEnum):
    """How an episode goes to its goal: exploring, or as in a test, along the map or straight."""

    EXPLORE, MAP, STRAIGHT = range(3)


def no_tries(goal_size: int) -> np.ndarray:
    """Return an empty table of tries [0, 2 G + 2]: start, goal, whether straight, whether the goal was reached."""
    return np.zeros((0, 2 * goal_size + 2), np.float32)


def with_try(tries: np.ndarray, start: np.ndarray, goal: np.ndarray, plan: Plan, reached: bool) -> np.ndarray:
    """Return the table [K, 2 G + 2] with another episode, unless that one explored."""
    if plan == Plan.EXPLORE:
        return tries
    row = np.concatenate([start, goal, [plan == Plan.STRAIGHT, reached]])
    return np.concatenate([tries, row[None]])[-_REMEMBERED:].astype(np.float32)


def straight_share(tries: np.ndarray) -> float:
    """Return the share of the latest tries that went straight; 0 without any."""
    return float(tries[-_LATEST:, -2].mean()) if len(tries) else 0.0


def outcomes(tries: np.ndarray, start: np.ndarray, goal: np.ndarray, straight: bool) -> tuple[float, float]:
    """Return how many episodes reached their goals one way, along the map or straight, and how many did not.

    Both include the prior. A try counts less the farther its start and goal are from `start` [G] and `goal` [G], and
    the more tries nearby came after it.
    """
    reached, failed = _PRIOR[straight]
    here = np.concatenate([start, goal])
    squares = np.square(tries[:, : len(here)] - here).sum(axis=1)
    chosen = tries[:, -2] == straight
    if not chosen.any():
        return reached, failed
    width = max(float(np.sort(squares)[:_NEARBY][-1]), 1.0)
    near = np.exp(-squares[chosen] / width)
    later = np.cumsum(near[::-1])[::-1] - near
    weight, success = near * _FADING**later, tries[chosen, -1]
    return reached + float(weight @ success), failed + float(weight @ (1.0 - success))


def choose_plan(tries: np.ndarray, start: np.ndarray, goal: np.ndarray, rng: np.random.Generator | None) -> Plan:
    """Return how to go from `start` [G] to `goal` [G].

    With a generator, as in training, the episode explores half of the time; if not, the way is drawn by Thompson
    sampling, each as often as it is likely to be the better one. Without, it is the way with the better record, or the
    map as long as no try has reached its goal: an environment that never reports success has no record.
    """
    if rng is not None and rng.random() < _EXPLORING:
        return Plan.EXPLORE
    if rng is None and not tries[:, -1].any():
        return Plan.MAP
    odds = [outcomes(tries, start, goal, straight) for straight in (False, True)]
    along, straight = (rng.beta(*each) if rng is not None else each[0] / sum(each) for each in odds)
    return Plan.STRAIGHT if straight > along else Plan.MAP
