"""TD3 against an implementation in NumPy whose gradients are finite differences."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from higl.algo import td3
from higl.settings.config import LevelConfig

INPUT, ACTION, BATCH = 3, 2, 6
SCALE = (0.8, 0.3)
ADAM = {"first": 0.9, "second": 0.999, "epsilon": 1e-8}
# A further loss on the actor's actions, as the high level has: 3 x the mean squared distance to a point.
PULL, PULL_TO = 3.0, np.array([0.3, -0.2])


# Large, so that some draws are clipped and some actions leave the range.
SMOOTHING = td3.Smoothing(sigma=0.9, limit=0.7)


@pytest.fixture(autouse=True)
def _constants(monkeypatch):
    """Numbers that are all different from each other, so that mixing them up fails, and large enough to matter."""
    monkeypatch.setattr(td3, "CRITIC_LEARNING_RATE", 0.03)
    monkeypatch.setattr(td3, "CRITIC_WEIGHT_DECAY", 0.1)
    monkeypatch.setattr(td3, "SOFT_UPDATE", 0.25)


def learner(*, bounded: bool = False, hidden: tuple[int, ...] = (5, 4), **changes) -> td3.TD3:
    config = LevelConfig(**({"actor_learning_rate": 0.02} | changes))
    return td3.TD3(config, SMOOTHING, hidden, INPUT, SCALE, bounded=bounded)


def batch(seed: int) -> td3.Batch:
    """Return random transitions. Rewards are so large that some errors are on the linear side of Huber's loss."""
    rng = np.random.default_rng(seed)
    return td3.Batch(
        rng.normal(size=(BATCH, INPUT)),
        rng.uniform(-1, 1, (BATCH, ACTION)) * SCALE,
        rng.normal(scale=2.0, size=BATCH),
        rng.normal(size=(BATCH, INPUT)),
        np.array([0.9, 0.9, 0.0, 0.9, 0.0, 0.9]),
    )


class Vector:
    """Arrays of any nesting as one flat vector of NumPy numbers, and back."""

    def __init__(self, tree):
        leaves, self.structure = jax.tree.flatten(jax.device_get(tree))
        self.shapes = [leaf.shape for leaf in leaves]
        self.values = np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in leaves])

    def tree(self, values: np.ndarray):
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        parts = np.split(values, ends)
        leaves = [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        return jax.tree.unflatten(self.structure, leaves)


def finite_differences(function, values: np.ndarray) -> np.ndarray:
    gradient = np.zeros_like(values)
    for place in range(len(values)):
        step = np.zeros_like(values)
        step[place] = 1e-6
        gradient[place] = (function(values + step) - function(values - step)) / 2e-6
    return gradient


@dataclass
class Adam:
    """Adam (Kingma and Ba, algorithm 1) on one vector."""

    rate: float
    mean: np.ndarray
    square: np.ndarray
    count: int = 0

    @classmethod
    def of(cls, rate: float, values: np.ndarray) -> Adam:
        return cls(rate, np.zeros_like(values), np.zeros_like(values))

    def step(self, values: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        self.count += 1
        self.mean = ADAM["first"] * self.mean + (1 - ADAM["first"]) * gradient
        self.square = ADAM["second"] * self.square + (1 - ADAM["second"]) * gradient**2
        mean = self.mean / (1 - ADAM["first"] ** self.count)
        square = self.square / (1 - ADAM["second"] ** self.count)
        return values - self.rate * mean / (np.sqrt(square) + ADAM["epsilon"])


class Oracle:
    """TD3 in NumPy, double precision, gradients by finite differences."""

    def __init__(self, settings: LevelConfig, state: td3.TD3State, *, pull: bool, bounded: bool = False):
        self.settings, self.pull, self.bounded = settings, pull, bounded
        self.rewards = [0.0]
        self.actor, self.critics = Vector(state.networks.actor), Vector(state.networks.critics)
        self.target_actor, self.target_critics = Vector(state.targets.actor), Vector(state.targets.critics)
        self.actor_adam = Adam.of(settings.actor_learning_rate, self.actor.values)
        self.critic_adam = Adam.of(td3.CRITIC_LEARNING_RATE, self.critics.values)

    def forward(self, layers, x: np.ndarray) -> np.ndarray:
        for weight, bias in layers[:-1]:
            x = x @ weight + bias
            x = np.where(x > 0, x, 0.0)
        weight, bias = layers[-1]
        return x @ weight + bias

    def act(self, actor, x: np.ndarray) -> np.ndarray:
        return np.tanh(self.forward(actor, x)) * SCALE

    def value(self, critic, x: np.ndarray, action: np.ndarray) -> np.ndarray:
        return self.forward(critic, np.hstack([x, action]))[:, 0]

    def target(self, batch: td3.Batch, draws: np.ndarray) -> np.ndarray:
        noise = np.empty_like(draws)
        for axis in range(ACTION):
            noise[:, axis] = np.clip(draws[:, axis] * SMOOTHING.sigma, -SMOOTHING.limit, SMOOTHING.limit)
        actor = self.target_actor.tree(self.target_actor.values)
        action = np.clip(self.act(actor, batch.next_input) + noise, np.negative(SCALE), SCALE)
        critics = self.target_critics.tree(self.target_critics.values)
        value = np.min([self.value(critic, batch.next_input, action) for critic in critics], axis=0)
        self.rewards += list(batch.reward)
        if self.bounded:
            most = 1 / (1 - self.settings.discount)
            value = np.minimum(np.maximum(value, most * min(self.rewards)), most * max(self.rewards))
        return batch.reward + batch.discount * value

    def critic_loss(self, values: np.ndarray, batch: td3.Batch, target: np.ndarray) -> float:
        loss = 0.0
        for critic in self.critics.tree(values):
            error = np.abs(self.value(critic, batch.input, batch.action) - target)
            loss += np.mean(np.where(error <= 1, error**2 / 2, error - 0.5))
        return loss

    def actor_loss(self, values: np.ndarray, batch: td3.Batch) -> float:
        action = self.act(self.actor.tree(values), batch.input)
        loss = -np.mean(self.value(self.critics.tree(self.critics.values)[0], batch.input, action))
        return loss + (PULL * np.mean(((action - PULL_TO) ** 2).sum(1)) if self.pull else 0.0)

    def update(self, batch: td3.Batch, draws: np.ndarray) -> dict[str, float]:
        target = self.target(batch, draws)
        info = {"critic_loss": self.critic_loss(self.critics.values, batch, target), "target": target.mean()}
        gradient = finite_differences(lambda values: self.critic_loss(values, batch, target), self.critics.values)
        gradient += td3.CRITIC_WEIGHT_DECAY * self.critics.values
        self.critics.values = self.critic_adam.step(self.critics.values, gradient)
        gradient = finite_differences(lambda values: self.actor_loss(values, batch), self.actor.values)
        self.actor.values = self.actor_adam.step(self.actor.values, gradient)
        for target_vector, vector in ((self.target_actor, self.actor), (self.target_critics, self.critics)):
            target_vector.values = (1 - td3.SOFT_UPDATE) * target_vector.values + td3.SOFT_UPDATE * vector.values
        return info


def pull_loss(action: jax.Array) -> tuple[jax.Array, td3.Info]:
    loss = PULL * jnp.mean(jnp.sum(jnp.square(action - PULL_TO), axis=-1))
    return loss, {"pull": loss}


# With a discount this small, rewards allow so little that most values are cut off.
BOUNDED = {"bounded": True, "discount": 1e-3}


@pytest.mark.parametrize("changes", [{}, BOUNDED], ids=str)
@pytest.mark.parametrize("pull", [False, True], ids=["plain", "with a further loss"])
def test_updates_equal_those_of_the_oracle(changes, pull):
    """Three updates in a row: networks, targets and (through the later ones) the state of both optimisers."""
    with jax.enable_x64():
        fixed = learner(**changes)
        state = td3.init(fixed, jax.random.key(0))
        oracle = Oracle(fixed.config, state, pull=pull, bounded=fixed.bounded)
        update = jax.jit(lambda state, batch, key: td3.update(fixed, state, batch, key, pull_loss if pull else None))
        for number in range(3):
            key = jax.random.key(number + 10)
            draws = np.asarray(jax.random.normal(key, (BATCH, ACTION)))
            transitions = batch(number)
            if fixed.bounded:
                transitions = transitions._replace(reward=0.01 * transitions.reward)
            state, info = update(state, transitions, key)
            expected = oracle.update(transitions, draws)
            for name, value in expected.items():
                assert float(info[name]) == pytest.approx(value, rel=1e-9), name
            for name, ours, theirs in (
                ("actor", state.networks.actor, oracle.actor),
                ("critics", state.networks.critics, oracle.critics),
                ("target actor", state.targets.actor, oracle.target_actor),
                ("target critics", state.targets.critics, oracle.target_critics),
            ):
                np.testing.assert_allclose(Vector(ours).values, theirs.values, atol=2e-6, err_msg=name)
        assert int(state.actor_optimiser[0].count) == 3


def test_an_update_of_the_critics_alone_leaves_actor_and_targets():
    fixed = learner()
    state = td3.init(fixed, jax.random.key(0))
    transitions = jax.tree.map(jnp.asarray, batch(0))
    critics, _ = td3.update_critics(fixed, state, transitions, jax.random.key(10))
    whole, _ = td3.update(fixed, state, transitions, jax.random.key(10))
    same = jax.tree.map(np.array_equal, critics.networks.critics, whole.networks.critics)
    assert all(jax.tree.leaves(same))
    assert int(critics.actor_optimiser[0].count) == 0
    kept = (critics.networks.actor, critics.targets), (state.networks.actor, state.targets)
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, *kept)))


def test_the_oracle_meets_every_branch():
    """The batches of the test above clip noise, clip actions, end episodes and leave the quadratic part of the loss."""
    with jax.enable_x64():
        fixed = learner()
        oracle = Oracle(fixed.config, td3.init(fixed, jax.random.key(0)), pull=False)
        draws = np.asarray(jax.random.normal(jax.random.key(10), (BATCH, ACTION)))
        noise, limit = draws * SMOOTHING.sigma, SMOOTHING.limit
        assert (np.abs(noise) > limit).any()
        assert (np.abs(noise) < limit).any()
        action = oracle.act(oracle.target_actor.tree(oracle.target_actor.values), batch(0).next_input)
        assert (np.abs(action + np.clip(noise, -limit, limit)) > SCALE).any()
        target = oracle.target(batch(0), draws)
        error = oracle.value(oracle.critics.tree(oracle.critics.values)[0], batch(0).input, batch(0).action) - target
        assert (np.abs(error) > 1).any()
        assert (np.abs(error) < 1).any()


def test_values_do_not_bootstrap_after_the_end():
    fixed = learner()
    state = td3.init(fixed, jax.random.key(0))
    ended = batch(0)._replace(discount=np.zeros(BATCH))
    target = td3.td_target(fixed, state.targets, state.rewards, ended, jax.random.key(1))
    np.testing.assert_allclose(target, ended.reward, rtol=1e-6)
    going_on = ended._replace(discount=np.ones(BATCH))
    target = td3.td_target(fixed, state.targets, state.rewards, going_on, jax.random.key(1))
    assert (np.abs(target - ended.reward) > 1e-3).all()


def test_possible_values_by_hand():
    rewards = td3.RewardRange(np.float32(-2.0), np.float32(0.5))
    assert td3.possible_values(0.9, rewards) == pytest.approx((-20.0, 5.0))
    assert np.isfinite(td3.possible_values(1.0, td3.RewardRange(np.float32(0.0), np.float32(0.0)))).all()


def test_the_range_of_rewards_only_grows():
    rewards = td3.init(learner(), jax.random.key(0)).rewards
    ranges = []
    for reward in ([-1.0, -3.0], [2.0, -2.0], [0.5]):
        rewards = td3.wider_range(rewards, jnp.asarray(reward))
        ranges.append((float(rewards.low), float(rewards.high)))
    assert ranges == [(-3.0, 0.0), (-3.0, 2.0), (-3.0, 2.0)]


@pytest.mark.parametrize("bounded", [False, True])
def test_values_of_states_that_nothing_trains_run_away_unless_targets_are_bounded(bounded, monkeypatch):
    """A value that bootstraps from farther out in its own direction grows with every update."""
    monkeypatch.setattr(td3, "CRITIC_WEIGHT_DECAY", 0.0)
    fixed = learner(bounded=bounded, discount=0.9)
    state = td3.init(fixed, jax.random.key(0))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, INPUT)).astype(np.float32)
    action = rng.uniform(-1, 1, (64, ACTION)).astype(np.float32) * np.float32(SCALE)
    discount = np.full(64, 0.9, np.float32)
    transitions = jax.tree.map(jnp.asarray, td3.Batch(x, action, np.full(64, -1, np.float32), 3 * x, discount))
    update = jax.jit(lambda state, key: td3.update(fixed, state, transitions, key))
    info = {}
    for number in range(1000):
        state, info = update(state, jax.random.key(number))
    assert (-10.0 <= float(info["target"]) <= 0.0) == bounded


def test_targets_start_equal_to_the_networks_but_are_not_the_same_arrays():
    """The state is donated to the compiled update, which does not accept the same array twice."""
    state = td3.init(learner(), jax.random.key(0))
    for network, target in zip(jax.tree.leaves(state.networks), jax.tree.leaves(state.targets), strict=True):
        assert network is not target
        np.testing.assert_array_equal(network, target)


def test_the_two_critics_start_different():
    first, second = td3.init(learner(), jax.random.key(0)).networks.critics
    assert not np.array_equal(first[0].weight, second[0].weight)


def test_policy_value_is_the_smaller_critic_at_the_actors_action():
    fixed = learner(hidden=(32, 32))
    networks = td3.init(fixed, jax.random.key(3)).networks
    x = np.random.default_rng(0).normal(size=(50, INPUT)).astype(np.float32)
    action = np.tanh(td3.mlp(networks.actor, jnp.asarray(x))) * np.asarray(SCALE)
    both = jnp.asarray(np.hstack([x, action]), jnp.float32)
    values = np.stack([td3.mlp(critic, both)[:, 0] for critic in networks.critics])
    assert 0 < np.argmin(values, axis=0).sum() < 50
    np.testing.assert_allclose(td3.policy_value(fixed, networks, jnp.asarray(x)), values.min(0), atol=1e-5)
    in_numpy = td3.policy_value(fixed, jax.device_get(networks), x)
    assert isinstance(in_numpy, np.ndarray)
    np.testing.assert_allclose(in_numpy, values.min(0), atol=1e-5)
