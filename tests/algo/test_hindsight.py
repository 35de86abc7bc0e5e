"""Goals in hindsight against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from support.toy import tiny_config

from higl.algo.episodes import Episode, high_rows
from higl.algo.hindsight import COPIES, hindsight_rows, rewarded


def near(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
    assert achieved.shape == desired.shape
    return -(np.linalg.norm(achieved - desired, axis=1) > 0.5).astype(np.float32)


def episode(length: int, seed: int, begins=None) -> Episode:
    """Return a random walk in which every number is different, so that rows can be told apart."""
    rng = np.random.default_rng(seed)
    achieved = np.cumsum(rng.normal(0.0, 0.4, (length + 1, 2)), axis=0).astype(np.float32)
    if begins is None:
        begins = np.arange(length) % 4 == 0
    return Episode(
        observation=rng.normal(size=(length + 1, 3)).astype(np.float32),
        achieved=achieved,
        desired=np.broadcast_to(rng.normal(size=2), achieved.shape).astype(np.float32),
        subgoal=rng.normal(size=(length, 2)).astype(np.float32),
        action=rng.normal(size=(length, 2)).astype(np.float32),
        reward=np.full(length, np.nan, np.float32),
        success=np.zeros(length, bool),
        terminated=False,
        truncated=True,
        begins=begins,
    )


def plain_hindsight(walked: Episode, times: list[int]) -> list[tuple[list[float], float]]:
    """Return goal and reward of each row, one by one: the goal is the point at its time."""
    starts = [step for step in range(len(walked)) if walked.begins[step]]
    stops = [*starts[1:], len(walked)]
    rows = []
    for start, stop in zip(starts, stops, strict=True):
        for _ in range(COPIES):
            goal = walked.achieved[times[len(rows)]].tolist()
            away = [np.hypot(*(walked.achieved[step + 1] - goal)) for step in range(start, stop)]
            rows.append((goal, -sum(float(distance > 0.5) for distance in away)))
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_each_segment_gets_goals_that_were_reached_later_and_their_rewards(seed):
    rng = np.random.default_rng(seed)
    begins = np.append(True, rng.random(20) < 0.3)  # segments of any length
    walked, config = episode(21, seed, begins), tiny_config(high={"relabel": bool(seed % 2), "period": 21})
    rows = hindsight_rows(config, walked, near, np.random.default_rng(seed))
    _, stops = walked.segments
    times = [int(np.flatnonzero((walked.achieved == goal).all(axis=1))[0]) for goal in rows.desired]
    assert (np.array(times) >= np.repeat(stops, COPIES)).all()
    expected = plain_hindsight(walked, times)
    np.testing.assert_array_equal(rows.desired, [goal for goal, _ in expected])
    np.testing.assert_array_equal(rows.next_desired, rows.desired)
    np.testing.assert_array_equal(rows.reward, [reward for _, reward in expected])
    known = high_rows(config, walked)
    for name in ("observation", "achieved", "subgoal", "next_observation", "next_achieved", "end"):
        np.testing.assert_array_equal(getattr(rows, name), np.repeat(getattr(known, name), COPIES, axis=0))
    assert (rows.segment is None) == (known.segment is None)


def test_the_last_point_and_the_end_of_the_segment_can_be_goals():
    walked = episode(8, 0)
    rng = np.random.default_rng(0)
    drawn = np.concatenate([hindsight_rows(tiny_config(), walked, near, rng).desired[:COPIES] for _ in range(100)])
    found = {int(np.flatnonzero((walked.achieved == goal).all(axis=1))[0]) for goal in drawn}
    assert found == {4, 5, 6, 7, 8}


def test_an_episode_is_rewarded_for_its_own_goal():
    walked = episode(8, 3)
    found = rewarded(walked, near)
    pairs = list(zip(walked.achieved, walked.desired, strict=True))[1:]
    expected = [-float(np.hypot(*(point - goal)) > 0.5) for point, goal in pairs]
    np.testing.assert_array_equal(found.reward, expected)
    assert found.desired is walked.desired
