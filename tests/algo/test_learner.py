"""The learner as a whole: its stages, reproducibility, the stop at NaN, and the number of compilations."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.toy import SPACES, PointEnv, changed, episode, tiny_config

from higl.algo import td3
from higl.algo.episodes import Episode, collect_episode, high_rows, in_units
from higl.algo.forward import actor_action
from higl.algo.high import high_batch
from higl.algo.landmarks import sample_landmarks
from higl.algo.learner import Learner, Metrics, _loop
from higl.algo.replay import sample
from higl.algo.subgoals import high_view
from higl.errors import NotFiniteError

LENGTHS = (25, 13, 25, 7, 1)
CONFIG = tiny_config()


def train(config: Any, lengths: tuple[int, ...] = LENGTHS) -> tuple[Learner, list[Metrics]]:
    """Return a learner after episodes of these lengths, and the metrics of each."""
    learner = Learner(config, SPACES)
    return learner, [learner.learn(episode(learner, seed, steps=steps)) for seed, steps in enumerate(lengths)]


def untimed(metrics: list[Metrics]) -> list[Metrics]:
    return [{name: value for name, value in one.items() if not name.startswith("seconds/")} for one in metrics]


@pytest.fixture(scope="module")
def trained() -> tuple[Learner, list[Metrics]]:
    """Return a learner of HIGL after five episodes (71 steps) and its metrics; tests must not change it."""
    return train(CONFIG)


def equal(first: Any, second: Any) -> bool:
    """Return whether two pytrees hold the same numbers."""
    leaves = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(ours, theirs) for ours, theirs in leaves)


# ---- what the stages do ----------------------------------------------------------------------------------------


def test_as_many_updates_as_steps_and_segments(trained):
    learner, _ = trained
    assert learner.steps == sum(LENGTHS)
    assert learner.episodes == len(LENGTHS)
    assert int(learner.state.low.actor_optimiser[0].count) == sum(LENGTHS)
    assert int(learner.state.high.actor_optimiser[0].count) == sum(-(-steps // 5) for steps in LENGTHS)
    assert int(learner.state.novelty.optimiser[0].count) == sum(LENGTHS)
    assert int(learner.state.low_buffer.size) == sum(LENGTHS)
    assert int(learner.state.high_buffer.size) == sum(-(-steps // 5) for steps in LENGTHS)


def test_critics_may_have_more_updates_than_the_actor():
    learner, _ = train(changed(CONFIG, low={"updates": 2, "critic_updates": 3}), lengths=(4, 3))
    state = learner.state.low
    assert int(state.actor_optimiser[0].count) == 2 * 7
    assert int(state.critic_optimiser[1][0].count) == 3 * 2 * 7


@pytest.mark.parametrize(("preset", "expected"), [("best", 2 * 25 + 13), ("paper", 25 + 13)])
def test_the_first_steps_of_a_run_are_learned_from_twice(preset, expected, monkeypatch):
    """Up to step 25 here; another run that it started from counts as its beginning."""
    monkeypatch.setattr("higl.algo.learner._EAGER", 25)
    learner, _ = train(changed(CONFIG, preset=preset), lengths=(25, 13))
    assert int(learner.state.low.actor_optimiser[0].count) == expected
    learner.start_over()
    learner.learn(episode(learner, 2, steps=7))
    assert int(learner.state.low.actor_optimiser[0].count) == expected + 7


def test_updates_of_the_critics_share_no_key(monkeypatch):
    """Each has a key for its batch and one for its noise, and none is used to make another."""
    stages, used = Learner(changed(CONFIG, low={"critic_updates": 3}), SPACES).stages, []
    monkeypatch.setattr(stages, "_low_batch", lambda state, key: used.append(key))
    monkeypatch.setattr(td3, "update_critics", lambda level, low, batch, key: (used.append(key), None))
    monkeypatch.setattr(td3, "update", lambda level, low, batch, key: used.append(key))
    key = jax.random.key(0)
    stages._update_low(None, None, key)
    made = [key, *used, *(child for parent in used for child in jax.random.split(parent))]
    assert len(used) == 6
    assert len({tuple(jax.random.key_data(each).tolist()) for each in made}) == 1 + 3 * 6


def test_planning_and_adjacency_start_when_they_are_due(trained):
    """Planning starts at step 40 (the third episode ends at 63), adjacency is trained at step 60."""
    _, metrics = trained
    assert [one["high/landmarks"] > 0 for one in metrics] == [False, False, True, True, True]
    distances = [one["high/pseudo_landmark_distance"] for one in metrics]
    assert distances[:2] == [0.0, 0.0]
    assert distances[2:] == pytest.approx([CONFIG.landmarks.shift] * 3, rel=1e-3)
    assert ["adjacency/loss" in one for one in metrics] == [False, False, True, False, False]


def test_the_health_of_a_run_is_measured(trained):
    _, metrics = trained
    names = {
        "low/progress",
        "low/subgoal_distance",
        "low/saturated",
        "low/value",
        "low/value_excess",
        "high/value",
        "high/return",
        "explored_cells",
        "adjacent_share",
        "high/landmark_loss",
        "high/selected_coverage",
        "high/selected_novelty",
        "high/selected_goal",
        "high/no_path",
        "episode/success",
    }
    for one in metrics:
        assert names <= set(one)
        assert all(np.isfinite(value) for value in one.values())
    selected = [metrics[-1][f"high/selected_{kind}"] for kind in ("coverage", "novelty", "goal")]
    assert sum(selected) == pytest.approx(1.0)


def test_no_stage_overwrites_the_health_metrics(monkeypatch):
    expected = {"low/value": 1.5, "low/value_excess": 2.5}
    expected_high = {"high/value": 3.5, "high/return": 4.5}
    monkeypatch.setattr("higl.algo.learner.low_value_metrics", lambda *_: dict(expected))
    monkeypatch.setattr("higl.algo.learner.high_value_metrics", lambda *_: dict(expected_high))
    learner = Learner(CONFIG, SPACES)
    metrics = learner.learn(episode(learner, 0, steps=12))
    assert {name: metrics[name] for name in expected | expected_high} == expected | expected_high


def test_landmarks_are_states_of_the_buffer_and_the_queue_without_repeats(trained):
    learner, _ = trained
    landmarks = sample_landmarks(
        CONFIG.landmarks, learner.state.low_buffer, learner.state.novelty.queue, jax.random.key(0)
    )
    coverage = CONFIG.landmarks.coverage
    assert np.asarray(landmarks.present).all()
    known = {tuple(row) for row in np.asarray(learner.state.low_buffer.rows.observation).tolist()}
    chosen = [tuple(row) for row in np.asarray(landmarks.observation[:coverage]).tolist()]
    assert set(chosen) <= known
    assert len(set(chosen)) == coverage
    np.testing.assert_array_equal(landmarks.achieved[:coverage], landmarks.observation[:coverage, :2])
    np.testing.assert_array_equal(landmarks.observation[coverage:], learner.state.novelty.queue.observation)


def test_every_update_of_the_high_level_samples_landmarks_anew(monkeypatch):
    """As many samples as updates, all with different keys (the algorithm table of the paper's appendix)."""
    keys = []

    def recorded(config, buffer, queue, key):
        jax.debug.callback(lambda data: keys.append(tuple(data.tolist())), jax.random.key_data(key))
        return sample_landmarks(config, buffer, queue, key)

    monkeypatch.setattr("higl.algo.learner.sample_landmarks", recorded)
    # A pool of another size, so that no compiled program of another test is used.
    learner = Learner(changed(CONFIG, landmarks={"pool": 31}), SPACES)
    learner.remember(episode(learner, 0, steps=12))
    learner.train_high(jax.random.key(0), jnp.asarray(3))
    assert keys == []  # planning has not started
    learner.steps = learner.config.landmarks.start
    learner.train_high(jax.random.key(0), jnp.asarray(3))
    jax.effects_barrier()
    assert len(set(keys)) == len(keys) == 3


def test_with_fewer_states_than_landmarks_the_rest_is_masked():
    learner = Learner(CONFIG, SPACES)
    learner.remember(episode(learner, 0, steps=2))
    landmarks = sample_landmarks(
        CONFIG.landmarks, learner.state.low_buffer, learner.state.novelty.queue, jax.random.key(0)
    )
    # Two states can be left (the last one is no row of the buffer), and three are in the queue.
    assert np.asarray(landmarks.present).tolist() == [True, True, False, False, True, True, True]
    assert len(np.unique(np.asarray(landmarks.achieved[:2]), axis=0)) == 2


def test_every_state_of_an_episode_is_offered_to_the_queue():
    """Including the last one, which is not a row of the low level's buffer."""
    learner = Learner(changed(CONFIG, landmarks={"novelty": 30}), SPACES)
    walked = episode(learner, 0, steps=12)
    learner.remember(walked)
    queue = learner.state.novelty.queue
    stored = np.asarray(queue.observation[queue.filled])
    np.testing.assert_allclose(np.sort(stored[:, 2]), np.sort(walked.observation[:, 2]), atol=1e-6)
    assert len(stored) == 13


def test_a_long_episode_does_not_discard_its_own_states(monkeypatch):
    """The queue is the same whether the states come in blocks of 5 or all at once."""
    config = changed(CONFIG, novelty={"similarity": 0.5})
    queues = []
    for block in (512, 5):
        monkeypatch.setattr("higl.algo.replay.INSERT_BLOCK", block)
        learner = Learner(config, SPACES)
        for seed in range(2):
            learner.remember(episode(learner, seed, steps=12))
        queues.append(learner.state.novelty.queue)
    jax.tree.map(partial(np.testing.assert_allclose, atol=1e-6), *queues)
    assert np.asarray(queues[0].filled).sum() > 1


def test_the_tested_policy_averages_the_actors_of_the_last_steps():
    """By hand: an exponential average over at most a tenth of the steps so far."""
    config = changed(CONFIG, evaluation={"average": 50})
    learner = Learner(config, SPACES)
    expected, steps = jax.device_get(learner.state.actors), 0
    for seed, length in enumerate((300, 200, 25, 8)):
        walked = episode(learner, seed, steps=length)
        learner.learn(walked)
        steps += length
        share = min(1.0, length / min(50, steps / 10))
        present = jax.device_get(learner.state.actors)
        expected = jax.tree.map(lambda old, new, share=share: (1 - share) * old + share * new, expected, present)
    policy = learner.tested_policy
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6),
        (policy.low_actor, policy.high_actor),
        tuple(expected),
    )
    assert not equal((policy.low_actor, policy.high_actor), tuple(jax.device_get(learner.state.actors)))


def test_without_an_average_the_tested_policy_is_the_current_one():
    learner, _ = train(changed(CONFIG, evaluation={"average": 0}), (25, 8))
    assert learner.state.averaged is None
    policy = learner.tested_policy
    assert equal((policy.low_actor, policy.high_actor), tuple(jax.device_get(learner.state.actors)))


def test_averaging_does_not_change_learning(trained):
    _, metrics = trained
    _, present = train(changed(CONFIG, evaluation={"average": 0}))
    assert untimed(present) == untimed(metrics)


def test_the_policy_is_that_of_the_trained_actors(trained):
    learner, _ = trained
    policy = learner.policy
    assert equal(policy.low_actor, learner.state.low.networks.actor)
    assert equal(policy.high_actor, learner.state.high.networks.actor)


@pytest.mark.parametrize("normalise", [False, True])
def test_acting_and_learning_agree_on_what_the_high_level_sees(normalise):
    """HRAC with units and an angle: the policy's subgoals and the measured value are those of the sampled rows."""
    low = {"normalise": normalise, "angles": (2,), "hidden_entries": (0, 1)}
    config = tiny_config(algo="hrac", goal_unit=(2.0, 0.5), low=low, high={"relabel": True})
    learner, _ = train(config, (25, 13))
    policy, state = learner.policy, learner.state
    rows = sample(state.high_buffer, jax.random.key(0), 64)
    batch = high_batch(config.high, high_view(config, state.seen), rows, rows.subgoal)
    expected = actor_action(state.high.networks.actor, jnp.asarray(policy.limit), batch.input)
    observation, achieved, desired = (np.asarray(part) for part in (rows.observation, rows.achieved, rows.desired))
    _, acted = policy.step(observation, achieved * policy.unit, desired * policy.unit, policy.begin(64), None)
    np.testing.assert_allclose(acted.subgoal, expected, atol=1e-4)
    plain = np.hstack([observation, desired])
    assert (batch.input.shape == plain.shape and np.array_equal(batch.input, plain)) != normalise

    further = episode(learner, 7)
    measured = learner._episode_metrics(in_units(further, policy.unit))["high/value"]
    first = jax.tree.map(lambda part: part[:1], high_rows(config, in_units(further, policy.unit)))
    inputs = high_batch(config.high, high_view(config, state.seen), first, first.subgoal).input
    value = td3.policy_value(learner.stages.high, state.high.networks, inputs)
    np.testing.assert_allclose(measured, value[0], atol=1e-4)


def test_the_unused_high_level_of_a_walked_map_has_no_view():
    """The networks of the high level keep their sizes, so that its checkpoints and policies stay valid."""
    config = tiny_config(landmarks={"graph": "walked"}, low={"normalise": True, "angles": (2,)})
    learner = Learner(config, SPACES)
    assert learner.policy.views.high is None
    assert len(learner.policy.high_actor[0].weight) == SPACES.observation + SPACES.goal


def test_a_walked_map_learns_the_same_from_any_reward():
    config = tiny_config(preset="best", landmarks={"graph": "walked"})
    learners = [Learner(config, SPACES) for _ in range(2)]
    for seed in range(3):
        one = episode(learners[0], seed)
        for learner, other in zip(learners, (one, replace(one, reward=one.reward * 3.0 - 1.0)), strict=True):
            learner.learn(other)
    first, second = ((each.state, each.map.arrays() if each.map else None) for each in learners)
    assert equal(first, second)


def test_loop_averages_and_counts():
    def step(state: jax.Array, key: jax.Array) -> tuple[jax.Array, td3.Info]:
        return state + 1, {"state": state}

    state, info = jax.jit(lambda count: _loop(count, step, jnp.zeros(()), jax.random.key(0)))(4)
    assert float(state) == 4
    assert float(info["state"]) == (0 + 1 + 2 + 3) / 4
    state, info = jax.jit(lambda count: _loop(count, step, jnp.zeros(()), jax.random.key(0)))(0)
    assert (float(state), float(info["state"])) == (0, 0)


def test_loop_gives_every_update_its_own_key():
    def step(state: jax.Array, key: jax.Array) -> tuple[jax.Array, td3.Info]:
        number = state[0].astype(int)
        return state.at[0].add(1).at[number + 1].set(jax.random.uniform(key)), {}

    state, _ = jax.jit(lambda: _loop(jnp.asarray(4), step, jnp.zeros(5), jax.random.key(0)))()
    assert len(set(np.asarray(state[1:]).tolist())) == 4


# ---- one code, three algorithms --------------------------------------------------------------------------------


def high_update(config: Any, walked: list[Episode], *, planning: bool) -> td3.TD3State:
    """Return the high level after two updates on some episodes."""
    learner = Learner(config, SPACES)
    for one in walked:
        learner.remember(one)
    learner.steps = config.landmarks.start if planning else 0
    learner.train_high(jax.random.key(7), jnp.asarray(2))
    return learner.state.high


@pytest.fixture(scope="module")
def walked() -> list[Episode]:
    policy = Learner(CONFIG, SPACES).policy
    return [collect_episode(PointEnv(), policy, seed, explore=True) for seed in range(3)]


def test_higl_without_planning_is_hrac_and_with_planning_is_not(walked):
    hrac = high_update(changed(CONFIG, algo="hrac", adjacency={"margin": 0.0}), walked, planning=True)
    higl = changed(CONFIG, adjacency={"margin": 0.0})
    before = high_update(higl, walked, planning=False)
    for ours, theirs in zip(jax.tree.leaves(before), jax.tree.leaves(hrac), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    planned = high_update(higl, walked, planning=True).networks.actor
    assert not equal(planned, hrac.networks.actor)
    # With a large margin the loss asks for nothing.
    other = changed(higl, adjacency={"margin": 1e3})
    assert not equal(planned, high_update(other, walked, planning=True).networks.actor)


def test_hiro_is_hrac_without_the_adjacency_loss(walked):
    hiro = high_update(changed(CONFIG, algo="hiro"), walked, planning=True)
    without = high_update(changed(CONFIG, algo="hrac", landmarks={"coefficient": 0.0}), walked, planning=True)
    for ours, theirs in zip(jax.tree.leaves(hiro), jax.tree.leaves(without), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    hrac = high_update(changed(CONFIG, algo="hrac", adjacency={"margin": 0.0}), walked, planning=True)
    assert not equal(hiro.networks.actor, hrac.networks.actor)


def test_the_baselines_report_only_the_metrics_of_their_parts():
    _, hrac = train(changed(CONFIG, algo="hrac"), (25, 25, 25))
    assert all("high/landmark_loss" in one and "high/selected_goal" not in one for one in hrac)
    assert all(one["high/pseudo_landmark_distance"] == 0 for one in hrac)
    assert not any("novelty/loss" in one for one in hrac)
    assert ["adjacency/loss" in one for one in hrac] == [False, False, True]
    _, hiro = train(changed(CONFIG, algo="hiro"), (25, 25, 25))
    assert not any("high/landmark_loss" in one or "adjacency/loss" in one for one in hiro)


def test_relabelled_subgoals_are_what_the_critics_learn_from(walked):
    """Relabelling changes the critics; with the stored subgoals alone they would be the same."""
    plain = changed(CONFIG, algo="hiro")
    relabelled = changed(plain, high={"relabel": True})
    assert not equal(
        high_update(relabelled, walked, planning=False).networks.critics,
        high_update(plain, walked, planning=False).networks.critics,
    )


# ---- the same seed gives the same run --------------------------------------------------------------------------


def test_the_same_seed_gives_bit_identical_metrics_and_another_does_not(trained):
    first, metrics = trained
    again, same = train(CONFIG)
    assert untimed(same) == untimed(metrics)
    assert equal(first.state, again.state)
    other, others = train(changed(CONFIG, seed=1))
    assert not equal(first.state.low.networks, other.state.low.networks)
    for ours, theirs in zip(untimed(metrics), untimed(others), strict=True):
        assert ours["low/critic_loss"] != theirs["low/critic_loss"]
        assert ours["high/critic_loss"] != theirs["high/critic_loss"]


# ---- NaN and infinity ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def victim() -> tuple[Learner, Any]:
    """Return a learner to put bad weights into, and its sound state on the host."""
    learner, _ = train(CONFIG, (25, 25))
    return learner, jax.device_get(learner.state)


def spoilt(layers: tuple, number: float) -> tuple:
    """Return a network with one bad weight."""
    weight = np.array(layers[0].weight)
    weight[0, 0] = number
    # The first input may be hidden or zero, and zero times infinity would be NaN already: any row will do.
    weight[-1, -1] = number
    return (layers[0]._replace(weight=jnp.asarray(weight)), *layers[1:])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("stage", ["low actor", "low critics", "high actor", "high critics", "novelty", "adjacency"])
def test_a_number_that_is_not_finite_stops_the_run_and_names_the_stage(victim, stage, number):
    learner, sound = victim
    state = jax.tree.map(jnp.asarray, sound)
    name, _, part = stage.partition(" ")
    if part:
        level = getattr(state, name)
        network = getattr(level.networks, part)
        bad = spoilt(network, number) if part == "actor" else (spoilt(network[0], number), network[1])
        state = state._replace(**{name: level._replace(networks=level.networks._replace(**{part: bad}))})
    elif name == "novelty":
        state = state._replace(novelty=state.novelty._replace(predictor=spoilt(state.novelty.predictor, number)))
    else:
        state = state._replace(adjacency=state.adjacency._replace(network=spoilt(state.adjacency.network, number)))
    walked = collect_episode(PointEnv(), learner.policy, 5, explore=True)
    learner.state = state
    stop = learner.train_adjacency if name == "adjacency" else partial(learner.learn, walked)
    with np.errstate(all="ignore"), pytest.raises(NotFiniteError, match=f"stage '{name}' after") as raised:
        stop()
    assert "nan" in str(raised.value) or "inf" in str(raised.value)
    learner.state = jax.tree.map(jnp.asarray, sound)


# ---- nothing is compiled twice ---------------------------------------------------------------------------------


def programs(learner: Learner) -> dict[str, int]:
    """Return how many programs each stage has been compiled to (`insert` is one function for all learners)."""
    stages = learner.stages
    compiled = {
        "low": stages.train_low,
        "high": stages.train_high,
        "novelty": stages.train_novelty,
        "adjacency": stages.train_adjacency,
        "scored": stages.update_queue.scored,
        "discard": stages.update_queue.discard_similar,
        "insert": stages.insert,
    }
    return {name: program._cache_size() for name, program in compiled.items()}


def test_episodes_of_any_length_share_the_compiled_programs(victim):
    learner, sound = victim
    learner.train_adjacency()
    before = programs(learner)
    # Learners of other tests share these two, which depend on no settings.
    own = set(before) - {"insert", "scored"}
    assert {name: before[name] for name in own} == dict.fromkeys(own, 1)
    for seed, steps in enumerate((13, 7, 1)):
        learner.learn(episode(learner, seed, steps=steps))
    # Another number of cells, pairs and batches.
    learner.matrix.add_trajectory(np.arange(80, dtype=np.float32).reshape(-1, 2))
    learner.train_adjacency()
    assert programs(learner) == before
    learner.state = jax.tree.map(jnp.asarray, sound)


# ---- every ablation of the paper is a setting ------------------------------------------------------------------

ABLATIONS = {
    "nothing": {},
    "no coverage": {"landmarks": {"coverage": 0}},
    "no novelty": {"landmarks": {"novelty": 0}},
    "no landmarks at all": {"landmarks": {"coverage": 0, "novelty": 0}},
    "raw": {"landmarks": {"pseudo": "raw"}},
    "automatic": {"landmarks": {"pseudo": "automatic"}},
    "discard by adjacency": {"novelty": {"discard": "adjacency"}},
    "absolute, relabelled": {"high": {"subgoals": "absolute", "relabel": True}, "low": {"hidden_entries": ()}},
    "relative, relabelled": {"high": {"relabel": True}},
    "bootstrap": {"time_limit": "bootstrap"},
    "bfloat16": {"precision": "bf16"},
}


@cache
def ablated(name: str) -> tuple[Learner, list[Metrics]]:
    changes = {part: dict(change) if isinstance(change, dict) else change for part, change in ABLATIONS[name].items()}
    changes["landmarks"] = {"start": 0} | changes.get("landmarks", {})
    changes["adjacency"] = {"every": 25} | changes.get("adjacency", {})
    learner, metrics = train(changed(CONFIG, **changes), (25, 8))
    assert all(np.isfinite(value) for one in metrics for value in one.values())
    return learner, metrics


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("bootstrap", "low"),
        ("bootstrap", "high"),
        ("bfloat16", "low"),
        ("bfloat16", "high"),
        ("bfloat16", "novelty"),
    ],
)
def test_a_setting_changes_what_its_part_learns(name, part):
    changed_learner, metrics = ablated(name)
    plain, _ = ablated("nothing")
    assert metrics[-1]["high/landmarks"] > 0
    ours, theirs = jax.tree.leaves(getattr(changed_learner.state, part)), jax.tree.leaves(getattr(plain.state, part))
    assert not all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_the_adjacency_network_is_trained_where_a_loss_reads_it():
    assert all("adjacency/loss" in one for one in ablated("nothing")[1][:1])
    assert CONFIG.uses_adjacency
    assert changed(CONFIG, algo="hrac").uses_adjacency
    assert changed(CONFIG, landmarks={"coverage": 0, "novelty": 0}).uses_adjacency
    assert not changed(CONFIG, algo="hiro").uses_adjacency
    assert not changed(CONFIG, landmarks={"graph": "walked"}).uses_adjacency


def test_without_coverage_no_coverage_landmark_is_selected():
    _, metrics = ablated("no coverage")
    assert [one["high/selected_coverage"] for one in metrics] == [0, 0]
    assert metrics[-1]["high/landmarks"] == CONFIG.landmarks.novelty


def test_without_novelty_there_is_no_novelty_network_to_train():
    _, metrics = ablated("no novelty")
    assert [one["high/selected_novelty"] for one in metrics] == [0, 0]
    assert metrics[-1]["high/landmarks"] == CONFIG.landmarks.coverage
    assert "novelty/loss" not in metrics[-1]


def test_without_landmarks_it_is_hrac():
    _, metrics = ablated("no landmarks at all")
    assert "high/landmark_loss" in metrics[-1]
    assert "high/selected_goal" not in metrics[-1]


def test_raw_and_automatic_pseudo_landmarks_lie_as_far_as_the_landmarks():
    for name in ("raw", "automatic"):
        _, metrics = ablated(name)
        for one in metrics:
            assert one["high/pseudo_landmark_distance"] == pytest.approx(one["high/selected_distance"], rel=0.02)
            assert one["high/pseudo_landmark_distance"] > 0


@pytest.mark.parametrize("name", ["absolute, relabelled", "relative, relabelled"])
def test_relabelling_changes_some_subgoals(name):
    learner, metrics = ablated(name)
    assert all(0 < one["high/relabelled"] <= 1 for one in metrics)
    rows = sample(learner.state.high_buffer, jax.random.key(0), 50)
    assert rows.segment.action.shape == (50, 5, 2)


@pytest.mark.parametrize(("discard", "old_ones"), [("adjacency", False), ("goal", True)])
def test_the_measure_of_similarity_is_a_setting(discard, old_ones):
    """For a constant adjacency network every stored state is similar to every new one."""
    config = changed(
        CONFIG, novelty={"discard": discard, "similarity": 1e-9}, landmarks={"novelty": 40, "start": 10**9}
    )
    learner = Learner(config, SPACES)
    network = jax.tree.map(jnp.zeros_like, learner.state.adjacency.network)
    learner.state = learner.state._replace(adjacency=learner.state.adjacency._replace(network=network))
    learner.remember(episode(learner, 0, steps=12))
    learner.remember(episode(learner, 1, steps=7))
    filled = int(np.asarray(learner.state.novelty.queue.filled).sum())
    assert filled == (13 + 8 if old_ones else 8)


@pytest.mark.parametrize(("preset", "bounded"), [("paper", False), ("best", True)])
def test_targets_of_both_levels_are_bounded_except_in_the_paper(preset, bounded):
    learner = Learner(changed(CONFIG, preset=preset), SPACES)
    assert (learner.stages.low.bounded, learner.stages.high.bounded) == (bounded, bounded)
    learner.learn(episode(learner, 0))
    low, high = learner.state.low.rewards, learner.state.high.rewards
    # Sparse rewards of segments of five steps, a tenth of them; the low level's are distances.
    assert (float(high.low), float(high.high)) == pytest.approx((-0.5, 0.0))
    assert float(low.low) < -1.0
    assert float(low.high) == 0.0
