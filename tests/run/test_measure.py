"""Evaluation: what an episode came to, by hand."""

import numpy as np
import pytest
from support.toy import PointEnv, tiny_config, untrained_policy

from higl.algo.episodes import Episode, collect_episode
from higl.run.measure import Outcome, evaluate


def walk(success: list[bool]) -> Episode:
    """Return a walk of three steps of length 5, 0 and 1."""
    achieved = np.array([[0, 0], [3, 4], [3, 4], [3, 5]], np.float32)
    return Episode(
        observation=achieved,
        achieved=achieved,
        desired=achieved,
        subgoal=achieved[1:],
        action=achieved[1:],
        reward=np.array([-1, 0, -1], np.float32),
        success=np.array(success),
        terminated=False,
        truncated=True,
    )


def test_any_step_makes_a_success():
    assert Outcome.of(walk([False, True, False])) == Outcome(True, -2.0, 3, 2, 6.0)


def test_no_step_makes_none():
    outcome = Outcome.of(walk([False, False, False]))
    assert not outcome.success
    assert outcome.steps_to_success is None


def test_one_episode_for_each_seed_without_exploration():
    policy = untrained_policy(tiny_config())
    env = PointEnv(steps=7)
    outcomes = evaluate(env, policy, [3, 4, 3])
    assert outcomes[0] == outcomes[2] != outcomes[1]
    alone = collect_episode(env, policy, 4, explore=False)
    assert outcomes[1].path_length == pytest.approx(np.linalg.norm(np.diff(alone.achieved, axis=0), axis=1).sum())
    assert [outcome.steps for outcome in outcomes] == [7, 7, 7]
