"""Learning itself, on a point that moves by its action: the low level alone, and the whole hierarchy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.toy import SPACES, PointEnv, changed, tiny_config

from higl.algo.episodes import collect_episode
from higl.algo.health import segment_metrics
from higl.algo.learner import Learner
from higl.run.measure import evaluate
from higl.settings.config import Config

STEPS = 50


def config(**changes) -> Config:
    """Return settings with which the point is learned within seconds."""
    settings = tiny_config(
        hidden=(64, 64),
        batch_size=64,
        buffer_size=8_000,
        low={"actor_learning_rate": 1e-3, "exploration": 0.3},
        high={"actor_learning_rate": 1e-3, "exploration": 1.0, "subgoal_range": (3.0,), "period": 5},
        adjacency={"degree": 4, "every": 500, "epochs": 5},
        landmarks={"coverage": 10, "novelty": 10, "pool": 200, "start": 1_000, "goal_within": 5.0},
    )
    return changed(settings, **changes)


# ---- the low level alone ----------------------------------------------------------------------------------------

RANDOM_SUBGOALS = {"random_steps": 10**9, "random_sigma": 2.0}


def progress_share(learner: Learner, env: PointEnv) -> float:
    """Return the share of the distance to random subgoals that a segment covers, without low-level exploration."""
    policy = learner.policy
    policy.low_sigma = 0.0
    episodes = [collect_episode(env, policy, seed, explore=True) for seed in range(1000, 1006)]
    return float(np.mean([segment_metrics(one, "relative")["low/progress_share"] for one in episodes]))


@pytest.mark.slow
def test_the_low_level_alone_learns_to_reach_random_subgoals():
    """The goal coordinates are hidden from it, so the subgoal is its only guide."""
    learner = Learner(config(high=RANDOM_SUBGOALS), SPACES)
    env = PointEnv(steps=STEPS)
    # Untrained it stays away from its subgoals (1 would be: it reaches them all).
    assert progress_share(learner, env) < 0.2
    for number in range(30):
        learner.remember(collect_episode(env, learner.policy, number, explore=True))
        learner.train_low(jax.random.fold_in(learner.key, number), jnp.asarray(STEPS))
    assert progress_share(learner, env) > 0.6


# ---- the whole hierarchy ----------------------------------------------------------------------------------------


def success(learner: Learner, env: PointEnv) -> float:
    """Return the share of test episodes, goals in all directions, that succeed."""
    return evaluate(env, learner.policy, range(1000, 1020)).success


# The cut-off leaves edges of a few units, and there are enough landmarks for paths of such edges.
DENSE = {"coverage": 20, "cutoff": 20.0}


@pytest.mark.slow
@pytest.mark.parametrize("graph", [DENSE, {"graph": "walked", "coverage": 200}])
def test_the_whole_hierarchy_learns_to_reach_far_goals(graph):
    """Goals are six units away, subgoals at most three and a segment's reach 2.5: two or three subgoals in a row.

    Rewards are sparse, so that landmarks have to show the way.
    """
    learner = Learner(config(landmarks=graph), SPACES)
    env = PointEnv(steps=STEPS, distance=6.0)
    reached = [success(learner, env)]
    assert reached[0] <= 0.2
    for number in range(200):
        learner.learn(collect_episode(env, learner.policy, number, explore=True))
        if number % 20 == 19:
            reached.append(success(learner, env))
            if reached[-1] >= 0.9:
                break
    assert max(reached) >= 0.8, reached
