"""`higl bench`: what each stage of a run costs, and how that compares with what the processor can do.

Everything is measured in one run on one machine: times only mean something beside the machine's own matrix product
rate at the same shapes, or beside another algorithm's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from higl import landmarks as lm
from higl.adjacency import CALL_BATCHES, epoch_batches
from higl.config import Config
from higl.envs import make_env
from higl.evaluate import evaluate
from higl.high import relabel
from higl.learner import Learner
from higl.nets import MLP
from higl.replay import sample
from higl.rollout import Spaces, collect_episode

# Times of a stage are the best of this many: the machine is shared, and only slows things down.
REPEATS = 5
EPISODES_BEFORE = 4


@dataclass(frozen=True)
class Stage:
    """A stage's cost: seconds and FLOPs of one call, and how many calls an environment step needs."""

    name: str
    seconds: float
    calls_per_step: float
    flops: float = 0.0
    part_of: str | None = None

    @property
    def milliseconds_per_step(self) -> float:
        """Return the stage's share of an environment step."""
        return 1e3 * self.seconds * self.calls_per_step

    def share_of(self, rate: float) -> float | None:
        """Return the stage's rate as a share of the matrix product rate (FLOP/s)."""
        return self.flops / self.seconds / rate if self.flops else None


def best_time(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the shortest of several times of a call, after one to compile it."""
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return min(times)


def gemm_rate(batch: int, width: int, loops: int = 600) -> float:
    """Return the machine's matrix product rate in FLOP/s, at the shapes of a hidden layer's update.

    One pass is the three products of such a layer: forward, gradient of the input, gradient of the weight.
    """

    def body(_: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        x, weight = carry
        forward = x @ weight
        back = forward @ weight.T
        grad = x.T @ back
        # The scales keep the numbers finite; everything is used, so nothing is optimised away.
        return back * (1.0 / width), weight * 0.5 + grad * 1e-9

    x = jax.random.normal(jax.random.key(0), (batch, width))
    weight = jax.random.normal(jax.random.key(1), (width, width)) * width**-0.5
    run = jax.jit(lambda x, weight: jax.lax.fori_loop(0, loops, body, (x, weight)))
    return loops * 3 * 2 * batch * width * width / best_time(lambda: run(x, weight))


def mlp_flops(params: MLP, rows: float) -> float:
    """Return the FLOPs of a network's forward pass over some rows."""
    return sum(2.0 * rows * np.prod(layer.weight.shape) for layer in params)


def td3_flops(state: Any, batch: int) -> float:
    """Return the FLOPs of one TD3 update.

    Target actor and both target critics forward; both critics forward and back; the actor forward and back, and the
    first critic forward and back to its input.
    """
    actor = mlp_flops(state.networks.actor, batch)
    critic = mlp_flops(state.networks.critics[0], batch)
    return (actor + 2 * critic) + 2 * 3 * critic + (3 * actor + 2 * critic)


class Bench:
    """Times the stages of one configuration on its real environment."""

    def __init__(self, config: Config):
        self.config = config
        self.env = make_env(config, "train")
        self.learner = Learner(config, Spaces.of(self.env))
        self.stages = self.learner.stages
        episodes = [
            collect_episode(self.env, self.learner.policy, number, explore=True) for number in range(EPISODES_BEFORE)
        ]
        for episode in episodes:
            self.learner.matrix.add_trajectory(episode.achieved)
            self.learner.remember(episode)
        self.episode = episodes[-1]

    def measure(self) -> list[Stage]:
        """Return the cost of every stage."""
        stages = [*self._environment(), self._low(), *self._high()]
        if self.config.uses_landmarks and self.config.landmarks.novelty:
            stages.append(self._novelty())
        if self.config.uses_adjacency:
            stages.append(self._adjacency())
        return [*stages, self._evaluation(), self._checkpoint()]

    def _environment(self) -> list[Stage]:
        """Time the environment's steps and the policy's actions apart."""
        policy, count = self.learner.policy, 200
        self.env.reset(seed=0)
        rng = np.random.default_rng(0)
        low, high = np.asarray(self.learner.spaces.action_low), np.asarray(self.learner.spaces.action_high)
        actions = rng.uniform(low, high, (count, len(low)))

        def step() -> None:
            self.env.reset(seed=0)
            for action in actions:
                _, _, terminated, truncated, _ = self.env.step(action)
                if terminated or truncated:
                    self.env.reset(seed=0)

        observation = self.episode.observation[0]
        subgoal, desired = self.episode.subgoal[0], self.episode.desired[0]

        def act() -> None:
            for number in range(count):
                if number % policy.period == 0:
                    policy.propose(observation, desired, rng)
                policy.environment_action(policy.act(observation, subgoal, rng))

        return [
            Stage("environment", best_time(step) / count, 1.0),
            Stage("acting", best_time(act) / count, 1.0, mlp_flops(policy.low_actor, 1)),
        ]

    def _low(self) -> Stage:
        """Time the low level's update."""
        count, state = 200, self.learner.state
        held = [jax.tree.map(jnp.copy, state.low)]

        def run() -> Any:
            held[0], info = self.stages.train_low(held[0], state.low_buffer, jax.random.key(0), jnp.asarray(count))
            return info

        flops = td3_flops(state.low, self.config.low.batch_size)
        return Stage("low update", best_time(run) / count, 1.0, flops)

    def _high(self) -> list[Stage]:
        """Time the high level's update, and its parts by themselves."""
        count, state, config = 20, self.learner.state, self.config
        held = [jax.tree.map(jnp.copy, state.high)]

        def run(planning: bool) -> Any:
            held[0], info = self.stages.train_high(
                held[0],
                state.low.networks,
                state.high_buffer,
                state.low_buffer,
                state.novelty.queue,
                state.adjacency.network,
                jax.random.key(0),
                jnp.asarray(count),
                jnp.asarray(planning),
            )
            return info

        per_step = 1 / config.high.period
        whole = best_time(lambda: run(True)) / count
        batch = config.high.batch_size
        parts = []
        if config.high.relabel:
            rows = batch * config.high.period * (config.high.relabel_candidates + 2)
            flops = mlp_flops(state.low.networks.actor, rows)
            parts.append(Stage("relabel", self._loop(self._relabel, count), per_step, flops, "high update"))
        if config.uses_landmarks:
            parts += self._planner(count, per_step)
        update = whole - sum(part.seconds for part in parts)
        flops = td3_flops(state.high, batch)
        if config.uses_adjacency:
            flops += 4 * mlp_flops(state.adjacency.network, batch)
        parts.append(Stage("update", update, per_step, flops, "high update"))
        return [Stage("high update", whole, per_step, sum(part.flops for part in parts)), *parts]

    def _planner(self, count: int, per_step: float) -> list[Stage]:
        """Time the planner's parts, each as what it adds to the ones before it."""
        total = self.config.landmarks.coverage + self.config.landmarks.novelty
        near = self.config.landmarks.neighbours or total
        batch = self.config.high.batch_size
        pairs = total * min(near + 1, total) + 2 * batch * min(near, total) + batch
        networks = self.learner.state.low.networks
        flops = mlp_flops(networks.actor, pairs) + 2 * mlp_flops(networks.critics[0], pairs)
        sampled = self._loop(self._sample_landmarks, count)
        weighed = self._loop(self._weigh, count)
        selected = self._loop(self._select, count)
        return [
            Stage("landmarks", sampled, per_step, 0.0, "high update"),
            Stage("edge weights", max(weighed - sampled, 0.0), per_step, flops, "high update"),
            Stage("shortest path", max(selected - weighed, 0.0), per_step, 0.0, "high update"),
        ]

    def _loop(self, part: Callable[[jax.Array], Any], count: int) -> float:
        """Return the time of one call of a part, from a compiled loop of several with a key each."""

        def body(index: jax.Array, total: jax.Array) -> jax.Array:
            leaves = jax.tree.leaves(part(jax.random.fold_in(jax.random.key(0), index)))
            return total + sum(jnp.sum(leaf.astype(jnp.float32)) for leaf in leaves)

        run = jax.jit(lambda: jax.lax.fori_loop(0, count, body, jnp.zeros(())))
        return best_time(run) / count

    def _rows(self, key: jax.Array) -> Any:
        return sample(self.learner.state.high_buffer, key, self.config.high.batch_size)

    def _relabel(self, key: jax.Array) -> jax.Array:
        actor = self.learner.state.low.networks.actor
        return relabel(self.config.high, self.stages.limit, actor, self.stages.visible, self._rows(key), key)

    def _sample_landmarks(self, key: jax.Array) -> lm.Landmarks:
        state = self.learner.state
        return self.stages.sample_landmarks(state.low_buffer, state.novelty.queue, key)

    def _weigh(self, key: jax.Array) -> lm.Weights:
        rows, landmarks = self._rows(key), self._sample_landmarks(key)
        distance = self.stages.distance(self.learner.state.low.networks)
        near = self.config.landmarks.neighbours
        return lm.weigh(distance, landmarks, rows.observation, rows.achieved, rows.desired, near)

    def _select(self, key: jax.Array) -> lm.Selection:
        return self.stages.plan(self.learner.state.low.networks, self._sample_landmarks(key), self._rows(key))

    def _novelty(self) -> Stage:
        """Time the novelty predictor's update."""
        count, state = 50, self.learner.state
        run = partial(self.stages.train_novelty, state.novelty, state.low_buffer, jax.random.key(0), jnp.asarray(count))
        flops = 4 * mlp_flops(state.novelty.predictor, self.config.novelty.batch_size)
        return Stage("novelty update", best_time(run) / count, 1 / self.config.high.period, flops)

    def _adjacency(self) -> Stage:
        """Time an adjacency batch; a training on 150 cells, about a maze's, has 25 passes over 11,175 pairs."""
        config, cells = self.config.adjacency, 150
        calls = epoch_batches(config, self.learner.matrix, np.random.default_rng(0))
        batches = jax.tree.map(jnp.asarray, calls[0][0])
        run = partial(self.stages.train_adjacency, self.learner.state.adjacency, batches, CALL_BATCHES)
        per_training = config.epochs * cells * (cells - 1) / 2 / config.batch_size
        flops = 3 * mlp_flops(self.learner.state.adjacency.network, 2 * config.batch_size)
        return Stage("adjacency update", best_time(run) / CALL_BATCHES, per_training / config.every, flops)

    def _evaluation(self) -> Stage:
        """Time an evaluation episode."""
        env, policy = make_env(self.config, "test"), self.learner.policy
        seconds = best_time(lambda: evaluate(env, policy, [0]), repeats=2)
        return Stage("evaluation", seconds, self.config.evaluation.episodes / self.config.evaluation.every)

    def _checkpoint(self) -> Stage:
        """Time a checkpoint of full buffers; how many a step needs depends on the step's own time."""
        raise NotImplementedError
