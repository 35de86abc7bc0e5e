"""Outcomes of episodes and their summary, computed by hand."""

import numpy as np
import pytest
from support.toy import PointEnv, tiny_config, untrained_policy

from higl.algo.episodes import Episode, collect_episode
from higl.run.measure import Evaluation, Outcome, evaluate, wilson_interval


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
        begins=np.array([True, False, False]),
    )


def test_success_at_any_step_counts():
    assert Outcome.of(walk([False, True, False])) == Outcome(True, False, -2.0, 3, 2, 6.0)


def test_success_at_the_last_step():
    assert Outcome.of(walk([False, True, True])) == Outcome(True, True, -2.0, 3, 2, 6.0)


def test_an_episode_without_success():
    assert Outcome.of(walk([False, False, False])) == Outcome(False, False, -2.0, 3, None, 6.0)


def test_summary_and_row_agree():
    hit, slow, miss = (
        Outcome(True, True, -10.0, 100, 40, 12.0),
        Outcome(True, False, -40.0, 100, 80, 18.0),
        Outcome(False, False, -100.0, 100, None, 30.0),
    )
    found = Evaluation((hit, slow, miss, miss))
    summary = found.summary()
    assert (summary["episodes"], summary["successes"], summary["success"]) == (4, 2, 0.5)
    assert (summary["successes_at_end"], summary["success_at_end"]) == (1, 0.25)
    assert summary["success_at_end_interval"] == pytest.approx(wilson_interval(1, 4))
    assert (summary["steps_to_success"], summary["path_length"], summary["return"]) == (60.0, 22.5, -62.5)
    assert summary["success_interval"] == pytest.approx(wilson_interval(2, 4))
    row = found.row(5_000, 1.23456)
    assert (row["step"], row["time"]) == (5_000, 1.235)
    shared = ("episodes", "success", "success_at_end", "return", "steps_to_success", "path_length")
    assert {name: row[name] for name in shared} == {name: summary[name] for name in shared}
    assert str(found) == "success 50% of 4 episodes (95% interval 15% to 85%), 25% at the last step, return -62.5"


def test_without_any_success_there_are_no_steps_to_it():
    found = Evaluation((Outcome(False, False, 0.0, 3, None, 1.0),))
    assert found.summary()["steps_to_success"] is None
    assert found.row(1, 0.0)["steps_to_success"] == ""


def test_wilson_interval():
    """Against the values that `statsmodels.stats.proportion.proportion_confint(..., method="wilson")` gives."""
    assert wilson_interval(8, 10) == pytest.approx((0.490162, 0.943318), abs=1e-5)
    assert wilson_interval(0, 5) == pytest.approx((0.0, 0.434482), abs=1e-5)


def test_one_episode_per_seed_without_exploration():
    policy = untrained_policy(tiny_config())
    env = PointEnv(steps=7)
    outcomes = evaluate(env, policy, [3, 4, 3]).outcomes
    assert outcomes[0] == outcomes[2] != outcomes[1]
    alone = collect_episode(env, policy, 4, explore=False)
    assert outcomes[1].path_length == pytest.approx(np.linalg.norm(np.diff(alone.achieved, axis=0), axis=1).sum())
    assert [outcome.steps for outcome in outcomes] == [7, 7, 7]


@pytest.mark.parametrize("count", [5, 7, 10, 100])
def test_the_interval_of_no_success_begins_at_0_and_of_all_ends_at_1(count):
    assert wilson_interval(0, count)[0] == 0.0
    assert wilson_interval(count, count)[1] == 1.0
