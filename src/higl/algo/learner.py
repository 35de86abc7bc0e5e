"""The learner: what happens after each episode, stage by stage, each stage one compiled program.

    1 novelty     score the episode's states -> queue
    2 low         n updates
    3 high        landmarks, graph, shortest paths; ceil(n / m) updates: sample, relabel, plan, pseudo-landmark, TD3
    4 novelty     ceil(n / m) updates of the predictor
    5 adjacency   every so many environment steps: cells -> pairs -> embedding

Loop counts are traced, so episodes of any length share the compiled programs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from higl.algo import adjacency as adj
from higl.algo import landmarks as lm
from higl.algo import td3
from higl.algo.episodes import Episode, high_rows, low_rows
from higl.algo.health import adjacency_metrics, episode_metrics, value_metrics
from higl.algo.high import HighRow, Segment, high_batch, landmark_loss, pseudo_landmark, relabel
from higl.algo.low import LowRow, exchange_subgoals, low_batch, low_distance, visible_entries
from higl.algo.nets import MLP, mlp, tree_finite, zeros_like_result
from higl.algo.novelty import (
    NoveltyState,
    Queue,
    discard_similar,
    distil,
    enter,
    goal_space_distance,
    init_novelty,
    novelty,
)
from higl.algo.policy import Policy, Spaces, subgoal_limit
from higl.algo.replay import Buffer, blocks, empty_buffer, insert, sample, sample_places
from higl.errors import NotFiniteError
from higl.settings.config import Config

Metrics = dict[str, float]


class Actors(NamedTuple):
    """The actors of both levels."""

    low: MLP
    high: MLP


class LearnerState(NamedTuple):
    """All that is learned or remembered on the device; `averaged` only where the settings ask for it."""

    low: td3.TD3State
    high: td3.TD3State
    novelty: NoveltyState
    adjacency: adj.AdjacencyState
    low_buffer: Buffer
    high_buffer: Buffer
    averaged: Actors | None

    @property
    def actors(self) -> Actors:
        """Return the present actors."""
        return Actors(self.low.networks.actor, self.high.networks.actor)


def _loop(count: jax.Array, step: Callable[[Any, jax.Array], tuple[Any, td3.Info]], state: Any, key: jax.Array) -> Any:
    """Run `count` updates with a key each; return the state, and each info averaged."""
    _, shape = jax.eval_shape(step, state, key)

    def body(index: jax.Array, carry: tuple[Any, td3.Info]) -> tuple[Any, td3.Info]:
        state, total = carry
        state, info = step(state, jax.random.fold_in(key, index))
        return state, jax.tree.map(jnp.add, total, info)

    zeros = jax.tree.map(lambda x: jnp.zeros((), jnp.float32), shape)
    state, total = jax.lax.fori_loop(0, count, body, (state, zeros))
    info = jax.tree.map(lambda x: x / jnp.maximum(count, 1), total)
    return state, info | {"finite": tree_finite(state)}


def _average(averaged: Actors, present: Actors, share: jax.Array) -> Actors:
    """Return averaged actors that took over a share of the present ones."""
    return jax.tree.map(lambda old, new: old + share * (new - old), averaged, present)


class Stages:
    """The compiled programs of a configuration: pure functions of named pytrees."""

    def __init__(self, config: Config, spaces: Spaces):
        self.config, self.spaces = config, spaces
        self.scheme = config.high.subgoals
        self.limit = subgoal_limit(config, spaces)
        self.visible = visible_entries(config.low, spaces.observation)
        self.low = td3.TD3(config.low, spaces.observation + spaces.goal, (1.0,) * spaces.action)
        scale = tuple(float(x) for x in self.limit)
        self.high = td3.TD3(config.high, spaces.observation + spaces.goal, scale)
        self.insert = jax.jit(insert, donate_argnums=0)
        self.scored = jax.jit(self._scored)
        self.refresh = jax.jit(self._refresh)
        self.discard_similar = jax.jit(self._discard_similar)
        self.enter = jax.jit(enter)
        self.train_low = jax.jit(self._train_low, donate_argnums=0)
        self.train_high = jax.jit(self._train_high, donate_argnums=0)
        self.train_novelty = jax.jit(self._train_novelty)
        self.average = jax.jit(_average)
        self.train_adjacency = jax.jit(partial(adj.train_batches, config.adjacency))

    def init(self, key: jax.Array) -> LearnerState:
        """Draw all networks; buffers and queue start empty."""
        config, spaces = self.config, self.spaces
        low_key, high_key, novelty_key, adjacency_key = jax.random.split(key, 4)
        observation, goal, scalar = np.zeros(spaces.observation), np.zeros(spaces.goal), np.zeros(())
        action, period = np.zeros(spaces.action), config.high.period
        segment = Segment(
            np.zeros((period, spaces.observation)),
            np.zeros((period, spaces.goal)),
            np.zeros((period, spaces.action)),
            np.zeros(period),
        )
        low_row = LowRow(observation, goal, goal, action, observation, goal, scalar)
        high_row = HighRow(
            observation,
            goal,
            goal,
            goal,
            scalar,
            observation,
            goal,
            goal,
            scalar,
            segment if config.high.relabel else None,
        )
        low, high = td3.init(self.low, low_key), td3.init(self.high, high_key)
        actors = Actors(low.networks.actor, high.networks.actor)
        return LearnerState(
            low,
            high,
            init_novelty(config.novelty, novelty_key, spaces.observation, spaces.goal, config.landmarks.novelty),
            adj.init_adjacency(config.adjacency, adjacency_key, spaces.goal),
            empty_buffer(low_row, config.low.buffer_size),
            empty_buffer(high_row, config.high.buffer_size),
            jax.tree.map(jnp.copy, actors) if config.evaluation.average else None,
        )

    def distance(self, networks: td3.Networks) -> lm.Distance:
        """Return the low level's estimate of how far a point is from a state."""
        return partial(low_distance, self.low, networks, self.visible, self.scheme)

    def _scored(self, state: NoveltyState, observation: jax.Array, achieved: jax.Array, count: jax.Array) -> Queue:
        """Return a block of states with their novelty, the first `count` of them filled."""
        score = self._novelty(state, observation, achieved)
        return Queue(observation, achieved, score, jnp.arange(observation.shape[0]) < count)

    def _refresh(self, state: NoveltyState) -> Queue:
        """Return the queue with the present novelty of its states."""
        queue = state.queue
        return queue._replace(score=self._novelty(state, queue.observation, queue.achieved))

    def _novelty(self, state: NoveltyState, observation: jax.Array, achieved: jax.Array) -> jax.Array:
        """Return the novelty of states by the present networks."""
        return novelty(state.predictor, state.target, self._novelty_input(observation, achieved))

    def _novelty_input(self, observation: jax.Array, achieved: jax.Array) -> jax.Array:
        """Return what the novelty networks see of states."""
        return achieved if self.config.novelty.space == "goal" else observation

    def _discard_similar(self, queue: Queue, new: Queue, network: MLP) -> Queue:
        """Drop the stored states that are similar to new ones, by the measure of the settings."""
        config = self.config
        distance = goal_space_distance
        if config.novelty.discard == "adjacency":
            distance = partial(adj.steps_between, config.adjacency, network)
        return discard_similar(queue, new, config.novelty.similarity, distance)

    def _train_low(
        self, state: td3.TD3State, buffer: Buffer, key: jax.Array, count: jax.Array
    ) -> tuple[td3.TD3State, td3.Info]:
        """Update the low level `count` times."""
        config = self.config.low

        def step(state: td3.TD3State, key: jax.Array) -> tuple[td3.TD3State, td3.Info]:
            sample_key, update_key = jax.random.split(key)
            rows = exchange_subgoals(self.scheme, config.exchange, sample(buffer, sample_key, config.batch_size))
            return td3.update(self.low, state, low_batch(config, self.scheme, self.visible, rows), update_key)

        return _loop(count, step, state, key)

    def sample_landmarks(self, buffer: Buffer, queue: Queue, key: jax.Array) -> lm.Landmarks:
        """Return coverage landmarks from the low level's buffer, then novelty landmarks from the queue."""
        config = self.config.landmarks
        pool = sample_places(buffer, key, config.pool)
        points = buffer.rows.achieved[pool]
        chosen, real = lm.farthest_points(points, config.coverage)
        if config.central and config.coverage:
            chosen = lm.central_points(points, chosen)
        places = pool[chosen]
        return lm.Landmarks(
            jnp.concatenate([buffer.rows.observation[places], queue.observation]),
            jnp.concatenate([buffer.rows.achieved[places], queue.achieved]),
            jnp.concatenate([real, queue.filled]),
            jnp.concatenate([jnp.zeros_like(real), jnp.ones_like(queue.filled)]),
        )

    def graph(self, low: td3.Networks, buffer: Buffer, queue: Queue, key: jax.Array) -> lm.Graph:
        """Sample landmarks and find the shortest paths between them."""
        config, landmarks = self.config.landmarks, self.sample_landmarks(buffer, queue, key)
        return lm.build_graph(self.distance(low), landmarks, config.cutoff, discount_pose=config.discount_pose)

    def ends(
        self,
        low: td3.Networks,
        graph: lm.Graph,
        observation: jax.Array,
        achieved: jax.Array,
        desired: jax.Array,
        neighbours: int | None = None,
    ) -> lm.Ends:
        """Weigh the edges that leave states and lead to goals, by the rules of the settings."""
        config = self.config.landmarks
        near = config.neighbours if neighbours is None else neighbours
        return lm.weigh_ends(
            self.distance(low),
            graph,
            observation,
            achieved,
            desired,
            config.cutoff,
            near,
            discount_pose=config.discount_pose,
        )

    def plan(self, low: td3.Networks, graph: lm.Graph, rows: HighRow, neighbours: int | None = None) -> lm.Selection:
        """Select a landmark for each sampled state."""
        config = self.config.landmarks
        ends = self.ends(low, graph, rows.observation, rows.achieved, rows.desired, neighbours)
        return lm.select(graph, ends, rows.desired, config.cutoff, config.goal_within)

    def _guide(self, low: td3.Networks, graph: lm.Graph, rows: HighRow) -> tuple[jax.Array, td3.Info]:
        """Return the pseudo-landmarks of sampled states, and what was selected."""
        config = self.config.landmarks
        selection = self.plan(low, graph, rows)
        coverage, total = config.coverage, config.coverage + config.novelty
        info = {
            "selected_coverage": jnp.mean(selection.index < coverage),
            "selected_novelty": jnp.mean((selection.index >= coverage) & (selection.index < total)),
            "selected_goal": jnp.mean(selection.index == total),
            "no_path": jnp.mean(~selection.path_exists),
            "landmarks": jnp.sum(graph.landmarks.present).astype(jnp.float32),
            "selected_distance": jnp.mean(goal_space_distance(selection.achieved, rows.achieved)),
        }
        return pseudo_landmark(config, rows.achieved, selection.achieved), info

    def _train_high(
        self,
        state: td3.TD3State,
        low: td3.Networks,
        buffer: Buffer,
        low_buffer: Buffer,
        queue: Queue,
        network: MLP,
        key: jax.Array,
        count: jax.Array,
        planning: jax.Array,
    ) -> tuple[td3.TD3State, td3.Info]:
        """Update the high level `count` times; without `planning` the pseudo-landmark is the current state.

        The landmarks and the paths between them serve all these updates: the low level and what has been seen do not
        change in between, and so all pairs of landmarks can be weighed.
        """
        config = self.config
        landmark_key, key = jax.random.split(key)
        graph = None
        if config.uses_landmarks:
            make_graph = partial(self.graph, low, low_buffer, queue)
            graph = jax.lax.cond(planning, make_graph, partial(zeros_like_result, make_graph), landmark_key)

        def step(state: td3.TD3State, key: jax.Array) -> tuple[td3.TD3State, td3.Info]:
            sample_key, relabel_key, update_key = jax.random.split(key, 3)
            rows = sample(buffer, sample_key, config.high.batch_size)
            subgoal, action_loss, info = rows.subgoal, None, {}
            if config.high.relabel:
                subgoal = relabel(config.high, self.limit, low.actor, self.visible, rows, relabel_key)
                info["relabelled"] = jnp.mean(jnp.any(subgoal != rows.subgoal, axis=-1))
            if config.uses_adjacency:
                pseudo, margin = rows.achieved, jnp.asarray(config.adjacency.margin)
                if graph is not None:
                    guide = partial(self._guide, low, graph)

                    def unguided(rows: HighRow) -> tuple[jax.Array, td3.Info]:
                        return rows.achieved, zeros_like_result(guide, rows)[1]

                    pseudo, guide_info = jax.lax.cond(planning, guide, unguided, rows)
                    margin = jnp.where(planning, config.landmarks.margin, margin)
                    info |= guide_info
                coefficient = config.landmarks.coefficient
                embed = partial(self._embed, network)
                action_loss = landmark_loss(coefficient, margin, self.scheme, embed, rows.achieved, pseudo)
            batch = high_batch(config.high, rows, subgoal)
            state, update_info = td3.update(self.high, state, batch, update_key, action_loss)
            return state, info | update_info

        return _loop(count, step, state, key)

    def _embed(self, network: MLP, points: jax.Array) -> jax.Array:
        """Return points of the goal space as the landmark loss measures them; without landmarks, the network does."""
        if self.config.uses_landmarks and self.config.landmarks.measure == "goal":
            return points / self.config.adjacency.cell
        return mlp(network, points)

    def _train_novelty(
        self, state: NoveltyState, buffer: Buffer, key: jax.Array, count: jax.Array
    ) -> tuple[NoveltyState, td3.Info]:
        """Update the novelty predictor `count` times."""

        def step(state: NoveltyState, key: jax.Array) -> tuple[NoveltyState, td3.Info]:
            places = sample_places(buffer, key, self.config.novelty.batch_size)
            seen = self._novelty_input(buffer.rows.observation[places], buffer.rows.achieved[places])
            state, loss = distil(self.config.novelty, state, seen)
            return state, {"loss": loss}

        return _loop(count, step, state, key)


class Learner:
    """Holds the state of a run's learning and moves it on, episode by episode."""

    def __init__(self, config: Config, spaces: Spaces):
        self.config, self.spaces = config, spaces
        self.stages = Stages(config, spaces)
        self.key = jax.random.key(config.seed)
        self.state = self.stages.init(jax.random.fold_in(self.key, 0))
        self.matrix = adj.CellMatrix(config.adjacency.cell, config.adjacency.degree, spaces.goal)
        self.steps = 0
        self.episodes = 0
        self.seconds: dict[str, float] = {}

    @property
    def policy(self) -> Policy:
        """Return the policy that explores, in NumPy: that of the present actors."""
        policy = Policy(self.config, self.spaces, *jax.device_get(self.state.actors))
        policy.random_subgoals = self.steps < self.config.high.random_steps
        return policy

    @property
    def tested_policy(self) -> Policy:
        """Return the policy that is tested and saved: that of the averaged actors, where there are any."""
        actors = self.state.averaged or self.state.actors
        return Policy(self.config, self.spaces, *jax.device_get(actors))

    def learn(self, episode: Episode) -> Metrics:
        """Take in an episode and train every part on what has been seen so far; return what was measured."""
        self.seconds = {}
        before = self.steps
        self.steps += len(episode)
        self.episodes += 1
        networks = jax.device_get((self.state.low.networks, self.state.high.networks))
        metrics = episode_metrics(self.config, episode)
        metrics |= value_metrics(self.config, self.stages.low, networks[0], self.stages.high, networks[1], episode)
        self.matrix.add_trajectory(episode.achieved)
        metrics |= {"explored_cells": float(len(self.matrix)), "adjacent_share": self.matrix.adjacent_share}
        self.remember(episode)
        low_key, high_key, novelty_key = jax.random.split(jax.random.fold_in(self.key, self.episodes), 3)
        count = jnp.asarray(len(episode))
        segments = jnp.asarray(-(-len(episode) // self.config.high.period))
        metrics |= self.train_low(low_key, count)
        metrics |= self.train_high(high_key, segments)
        if self.config.uses_landmarks and self.config.landmarks.novelty:
            metrics |= self.train_novelty(novelty_key, segments)
        every = self.config.adjacency.every
        if self.config.reads_adjacency_network and before // every < self.steps // every:
            metrics |= self.train_adjacency()
        self.average(len(episode))
        return metrics | {f"seconds/{stage}": taken for stage, taken in self.seconds.items()}

    def remember(self, episode: Episode) -> None:
        """Insert the episode into both buffers and its states into the novelty queue."""
        start = time.perf_counter()
        state, stages, config = self.state, self.stages, self.config
        low_buffer, high_buffer, queue = state.low_buffer, state.high_buffer, state.novelty.queue
        for block, count in blocks(low_rows(config, episode), config.low.buffer_size):
            low_buffer = stages.insert(low_buffer, block, count)
        for block, count in blocks(high_rows(config, episode), config.high.buffer_size):
            high_buffer = stages.insert(high_buffer, block, count)
        if config.uses_landmarks and config.landmarks.novelty:
            if config.novelty.refresh:
                queue = stages.refresh(state.novelty)
            states = blocks((episode.observation, episode.achieved), config.low.buffer_size)
            scored = [stages.scored(state.novelty, *block, count) for block, count in states]
            # First all of them, or a long episode's own states would be dropped for its later ones.
            for new in scored:
                queue = stages.discard_similar(queue, new, state.adjacency.network)
            for new in scored:
                queue = stages.enter(queue, new)
        self.state = state._replace(
            low_buffer=low_buffer, high_buffer=high_buffer, novelty=state.novelty._replace(queue=queue)
        )
        jax.block_until_ready(self.state.low_buffer.size)
        self.seconds["remember"] = time.perf_counter() - start

    def average(self, steps: int) -> None:
        """Let the averaged actors follow the present ones after an episode of so many steps.

        From one episode to the next a gait may come and go that falls in the same corner each time; the average over
        many episodes has the ways of most of them.
        """
        if self.state.averaged is None:
            return
        window = min(self.config.evaluation.average, self.steps / 10)
        share = jnp.asarray(min(1.0, steps / window), jnp.float32)
        self.state = self.state._replace(averaged=self.stages.average(self.state.averaged, self.state.actors, share))

    def train_low(self, key: jax.Array, count: jax.Array) -> Metrics:
        """Update the low level `count` times."""
        start = time.perf_counter()
        low, info = self.stages.train_low(self.state.low, self.state.low_buffer, key, count)
        self.state = self.state._replace(low=low)
        return self._finish("low", info, start)

    def train_high(self, key: jax.Array, count: jax.Array) -> Metrics:
        """Update the high level `count` times."""
        start = time.perf_counter()
        state = self.state
        planning = jnp.asarray(self.steps >= self.config.landmarks.start)
        high, info = self.stages.train_high(
            state.high,
            state.low.networks,
            state.high_buffer,
            state.low_buffer,
            state.novelty.queue,
            state.adjacency.network,
            key,
            count,
            planning,
        )
        self.state = self.state._replace(high=high)
        return self._finish("high", info, start)

    def train_novelty(self, key: jax.Array, count: jax.Array) -> Metrics:
        """Update the novelty predictor `count` times."""
        start = time.perf_counter()
        state, info = self.stages.train_novelty(self.state.novelty, self.state.low_buffer, key, count)
        self.state = self.state._replace(novelty=state)
        return self._finish("novelty", info, start)

    def train_adjacency(self) -> Metrics:
        """Train the adjacency network on the cells seen so far (eq. 5)."""
        start = time.perf_counter()
        rng = np.random.default_rng([self.config.seed, self.episodes])
        state, total, count = self.state.adjacency, jnp.zeros(()), 0
        for _ in range(self.config.adjacency.epochs):
            total, count = jnp.zeros(()), 0
            for batches, number in adj.epoch_batches(self.config.adjacency, self.matrix, rng):
                state, loss = self.stages.train_adjacency(state, batches, number)
                total, count = total + loss, count + number
        self.state = self.state._replace(adjacency=state)
        info = {"loss": total / max(count, 1), "finite": tree_finite(state.network)}
        network = jax.device_get(state.network)
        return self._finish("adjacency", info, start) | adjacency_metrics(
            self.config.adjacency, network, self.matrix, rng
        )

    def _finish(self, stage: str, info: td3.Info, start: float) -> Metrics:
        """Wait for a stage, time it, and stop if anything in it is not finite."""
        values = {name: float(value) for name, value in jax.device_get(info).items()}
        self.seconds[stage] = time.perf_counter() - start
        finite = values.pop("finite")
        if not finite or not all(np.isfinite(value) for value in values.values()):
            raise NotFiniteError(
                f"NaN or infinity in the stage '{stage}' after {self.steps} steps (episode {self.episodes}): "
                + ", ".join(f"{name}={value:.4g}" for name, value in values.items())
            )
        return {f"{stage}/{name}": value for name, value in values.items()}
