"""The learner: what happens after each episode, stage by stage.

    1 remember    the episode's rows -> buffers, its states -> novelty queue; or its trajectory -> walked map
    2 low         n times `low.updates` updates, at first twice as many
    3 high        ceil(n / m) updates: sample, relabel, landmarks, graph, shortest paths, pseudo-landmark, TD3
    4 novelty     n updates of the predictor
    5 adjacency   every `adjacency.every` environment steps: cells -> pairs -> embedding

With a walked map (`landmarks.graph`) only the first two take place: the map is the high level.

The updates of a stage are one compiled program. Loop counts are traced, so episodes of any length share the compiled
programs. A stage takes the learner's whole state and returns it with the part that it trains replaced; the state is
donated, so nothing is copied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from higl.algo import adjacency as adj
from higl.algo import novelty as nov
from higl.algo import planner, td3
from higl.algo.episodes import Episode, blank_episode, high_rows, in_units, low_rows
from higl.algo.forward import MLP
from higl.algo.health import adjacency_metrics, episode_metrics, high_value_metrics, low_value_metrics
from higl.algo.high import SMOOTHING, HighRow, high_batch, landmark_loss, relabel
from higl.algo.hindsight import Rewards, hindsight_rows, rewarded
from higl.algo.landmarks import sample_landmarks
from higl.algo.low import exchange_subgoals, low_batch, low_distance
from higl.algo.nets import tree_finite, zeros_like_result
from higl.algo.plans import straight_share
from higl.algo.policy import Policy, Spaces, goal_unit, subgoal_limit
from higl.algo.products import affine_of
from higl.algo.replay import Buffer, blocks, empty_buffer, insert, sample, sample_places
from higl.algo.subgoals import (
    Statistics,
    high_input_size,
    high_view,
    low_input_size,
    low_view,
    no_statistics,
    subgoal_target,
    updated_statistics,
    views_of,
)
from higl.algo.walked import WalkedMap
from higl.errors import NotFiniteError
from higl.settings.config import Config

Metrics = dict[str, float]

# With a map: steps of random subgoals at the least, and by how many units a segment then leads closer to its target.
_SHORTEST_BEGINNING, _WALKS = 1_000, 0.25
# Up to this step a run learns twice as much from each step: data are few, and later steps take no longer for it.
_EAGER = 20_000
# Separates the random stream of goals in hindsight from the other streams of the same episode.
_HINDSIGHT = 6


class Actors(NamedTuple):
    """The actors of both levels."""

    low: MLP
    high: MLP


class LearnerState(NamedTuple):
    """All that is learned or remembered on the device; `averaged` is None unless the settings ask for it."""

    low: td3.TD3State
    high: td3.TD3State
    novelty: nov.NoveltyState
    adjacency: adj.AdjacencyState
    low_buffer: Buffer
    high_buffer: Buffer
    averaged: Actors | None
    seen: Statistics

    @property
    def actors(self) -> Actors:
        """Return the current actors."""
        return Actors(self.low.networks.actor, self.high.networks.actor)


def _loop(count: jax.Array, step: Callable[[Any, jax.Array], tuple[Any, td3.Info]], state: Any, key: jax.Array) -> Any:
    """Run `count` updates, each with its own key; return the state and the averages of the infos."""
    _, shape = jax.eval_shape(step, state, key)

    def body(index: jax.Array, carry: tuple[Any, td3.Info]) -> tuple[Any, td3.Info]:
        state, total = carry
        state, info = step(state, jax.random.fold_in(key, index))
        return state, jax.tree.map(jnp.add, total, info)

    zeros = jax.tree.map(lambda x: jnp.zeros((), jnp.float32), shape)
    state, total = jax.lax.fori_loop(0, count, body, (state, zeros))
    info = jax.tree.map(lambda x: x / jnp.maximum(count, 1), total)
    return state, info | {"finite": tree_finite(state)}


def _average(averaged: Actors, current: Actors, share: jax.Array) -> Actors:
    """Move averaged actors towards the current ones by a share; weights that are equal stay as they are."""
    return jax.tree.map(lambda old, new: old + share * (new - old), averaged, current)


class Stages:
    """The compiled programs of a configuration: pure functions of the learner's state."""

    def __init__(self, config: Config, spaces: Spaces):
        self.config, self.spaces = config, spaces
        self.limit = subgoal_limit(config, spaces)
        self.affine = affine_of(config.precision)
        bounded = config.bounds_targets
        smoothing = td3.Smoothing(config.low.target_noise, config.low.target_noise_clip)
        low_size = low_input_size(config.low, spaces.observation, spaces.goal)
        ones = (1.0,) * spaces.action
        self.low = td3.TD3(config.low, smoothing, config.hidden, low_size, ones, self.affine, bounded)
        scale = tuple(float(x) for x in self.limit)
        high_size = high_input_size(config, spaces.observation, spaces.goal)
        self.high = td3.TD3(config.high, SMOOTHING, config.hidden, high_size, scale, self.affine, bounded)
        self.insert = jax.jit(insert, donate_argnums=0)
        self.update_queue = nov.QueueUpdate(config.novelty)
        self.train_low = jax.jit(self._train_low, donate_argnums=0)
        self.train_high = jax.jit(self._train_high, donate_argnums=0)
        self.train_novelty = jax.jit(self._train_novelty, donate_argnums=0)
        self.average = jax.jit(_average)
        self.train_adjacency = jax.jit(partial(adj.train_batches, config.adjacency))

    def init(self, key: jax.Array) -> LearnerState:
        """Draw all networks; buffers and queue start empty."""
        config, spaces = self.config, self.spaces
        low_key, high_key, novelty_key, adjacency_key = jax.random.split(key, 4)
        low, high = td3.init(self.low, low_key), td3.init(self.high, high_key)
        actors = Actors(low.networks.actor, high.networks.actor)
        blank = blank_episode(spaces)
        return LearnerState(
            low=low,
            high=high,
            novelty=nov.init_novelty(novelty_key, spaces.observation, spaces.goal, config.landmarks.novelty),
            adjacency=adj.init_adjacency(adjacency_key, spaces.goal),
            low_buffer=empty_buffer(low_rows(config, blank), config.buffer_size),
            # A map is the high level: nothing samples from this buffer then.
            high_buffer=empty_buffer(high_rows(config, blank), 1 if config.walks_map else config.buffer_size),
            averaged=jax.tree.map(jnp.copy, actors) if config.evaluation.average else None,
            seen=jax.tree.map(jnp.asarray, no_statistics(spaces.observation)),
        )

    # --- The low level ---

    def _train_low(self, state: LearnerState, key: jax.Array, count: jax.Array) -> tuple[LearnerState, td3.Info]:
        """Update the low level `count` times."""
        low, info = _loop(count, partial(self._update_low, state), state.low, key)
        return state._replace(low=low), info

    def _update_low(self, state: LearnerState, low: td3.TD3State, key: jax.Array) -> tuple[td3.TD3State, td3.Info]:
        """Update the critics `low.critic_updates` times, then the actor and the targets."""
        last, *earlier = jax.random.split(key, (self.config.low.critic_updates, 2))
        for sample_key, update_key in earlier:
            low, _ = td3.update_critics(self.low, low, self._low_batch(state, sample_key), update_key)
        sample_key, update_key = last
        return td3.update(self.low, low, self._low_batch(state, sample_key), update_key)

    def _low_batch(self, state: LearnerState, key: jax.Array) -> td3.Batch:
        """Return a batch of low-level transitions, some of them with other subgoals (`low.exchange`)."""
        config, scheme = self.config.low, self.config.high.subgoals
        rows = exchange_subgoals(scheme, config.exchange, sample(state.low_buffer, key, self.config.batch_size))
        return low_batch(config, scheme, low_view(config, state.seen), rows)

    # --- The high level ---

    def distance(self, state: LearnerState) -> planner.Distance:
        """Return the low level's estimate of how far a point is from a state."""
        view = low_view(self.config.low, state.seen)
        return partial(low_distance, self.low, state.low.networks, view, self.config.high.subgoals)

    def graph(self, state: LearnerState, key: jax.Array) -> planner.Graph:
        """Sample landmarks and find the shortest paths between them."""
        config = self.config.landmarks
        landmarks = sample_landmarks(config, state.low_buffer, state.novelty.queue, key)
        return planner.build_graph(config, self.distance(state), landmarks)

    def _train_high(
        self, state: LearnerState, key: jax.Array, count: jax.Array, planning: jax.Array
    ) -> tuple[LearnerState, td3.Info]:
        """Update the high level `count` times; without `planning` the pseudo-landmark is the current state."""
        high, info = _loop(count, partial(self._update_high, state, planning), state.high, key)
        return state._replace(high=high), info

    def _update_high(
        self, state: LearnerState, planning: jax.Array, high: td3.TD3State, key: jax.Array
    ) -> tuple[td3.TD3State, td3.Info]:
        """Update the high level once; it reads all of `state` except the high level's networks."""
        config = self.config
        sample_key, relabel_key, update_key, landmarks_key = jax.random.split(key, 4)
        rows = sample(state.high_buffer, sample_key, config.batch_size)
        subgoal, action_loss, info = rows.subgoal, None, {}
        if config.high.relabel:
            actor, view = state.low.networks.actor, low_view(config.low, state.seen)
            subgoal = relabel(config.high, self.limit, actor, view, rows, relabel_key, self.affine)
            info["relabelled"] = jnp.mean(jnp.any(subgoal != rows.subgoal, axis=-1))
        if config.uses_adjacency:
            pseudo, guide_info = self._pseudo_landmarks(state, planning, rows, landmarks_key)
            info |= guide_info
            network = state.adjacency.network
            action_loss = partial(landmark_loss, config, network, rows.achieved, pseudo)
        batch = high_batch(config.high, high_view(config, state.seen), rows, subgoal)
        high, update_info = td3.update(self.high, high, batch, update_key, action_loss)
        return high, info | update_info

    def _pseudo_landmarks(
        self, state: LearnerState, planning: jax.Array, rows: HighRow, key: jax.Array
    ) -> tuple[jax.Array, td3.Info]:
        """Return the pseudo-landmarks of sampled states [B, G], and statistics of the selection."""
        if not self.config.uses_landmarks:
            return rows.achieved, {}
        guide = partial(self._guide, state, key)
        query = planner.Query(rows.observation, rows.achieved, rows.desired)
        return jax.lax.cond(planning, guide, partial(_unguided, guide), query)

    def _guide(self, state: LearnerState, key: jax.Array, query: planner.Query) -> tuple[jax.Array, td3.Info]:
        """Return pseudo-landmarks by landmarks that are sampled anew (appendix, algorithm table)."""
        return planner.guide(self.config.landmarks, self.distance(state), self.graph(state, key), query)

    # --- Novelty ---

    def _train_novelty(self, state: LearnerState, key: jax.Array, count: jax.Array) -> tuple[LearnerState, td3.Info]:
        """Update the novelty predictor `count` times."""
        trained, info = _loop(count, partial(self._update_novelty, state.low_buffer), state.novelty, key)
        return state._replace(novelty=trained), info

    def _update_novelty(
        self, buffer: Buffer, state: nov.NoveltyState, key: jax.Array
    ) -> tuple[nov.NoveltyState, td3.Info]:
        places = sample_places(buffer, key, nov.BATCH_SIZE)
        state, loss = nov.distil(state, buffer.rows.observation[places], self.affine)
        return state, {"loss": loss}


@lru_cache(maxsize=8)
def _shared_stages(config: Config, spaces: Spaces) -> Stages:
    return Stages(config, spaces)


def stages_of(config: Config, spaces: Spaces) -> Stages:
    """Return the compiled programs of settings; learners that differ only in seed and length share them."""
    return _shared_stages(replace(config, seed=0, steps=1), spaces)


def _unguided(guide: Callable[[planner.Query], Any], query: planner.Query) -> tuple[jax.Array, td3.Info]:
    """Return the current states as pseudo-landmarks, and zeros for the statistics that `guide` returns."""
    return query.achieved, zeros_like_result(guide, query)[1]


class Learner:
    """The state of a run's learning, advanced episode by episode."""

    def __init__(self, config: Config, spaces: Spaces):
        self.config, self.spaces = config, spaces
        self.stages = stages_of(config, spaces)
        self.key = jax.random.key(config.seed)
        self.state = self.stages.init(jax.random.fold_in(self.key, 0))
        self.matrix = adj.CellMatrix(config.adjacency.cell, config.adjacency.degree, spaces.goal)
        self.map: WalkedMap | None = None
        if config.walks_map:
            self.map = WalkedMap(config.landmarks.coverage, spaces.goal, config.high.period)
        self.steps = 0
        self.episodes = 0
        self.before = 0
        """Steps of the run that this one started from."""
        self.seconds: dict[str, float] = {}

    def start_over(self) -> None:
        """Count steps and episodes from 0, and keep all that was learned: the beginning of another run."""
        self.before += self.steps
        self.steps = self.episodes = 0

    @property
    def policy(self) -> Policy:
        """Return the policy that explores: the current actors in NumPy."""
        policy = self._policy_of(self.state.actors)
        policy.random_subgoals = self._begins()
        policy.wanders = self.config.explores_freely
        return policy

    def _begins(self) -> bool:
        """Return whether subgoals are still random.

        With a map, the random phase ends as soon as the body goes where it is asked to. That it moves is not enough: an
        ant that has not learned to walk moves half a unit in a segment, in any direction. Of the baseline that explores
        by random subgoals, it never ends.
        """
        config = self.config
        if config.explores_freely and config.walks_map and config.landmarks.explore == "random":
            return True
        steps = self.before + self.steps
        obeys = self.map is not None and steps >= _SHORTEST_BEGINNING and self.map.progress >= _WALKS
        return steps < config.high.random_steps and not obeys

    @property
    def tested_policy(self) -> Policy:
        """Return the policy that is tested and saved: the averaged actors, if the settings ask for them."""
        return self._policy_of(self.state.averaged or self.state.actors)

    def _policy_of(self, actors: Actors) -> Policy:
        low, high, seen = jax.device_get((*actors, self.state.seen))
        chart = self.map.chart() if self.map is not None else None
        return Policy(self.config, self.spaces, low, high, views_of(self.config, seen), chart)

    def learn(self, episode: Episode, rewards: Rewards | None = None) -> Metrics:
        """Store an episode, run every stage once, and return the metrics.

        With `rewards`, the high level also learns in hindsight; they replace the environment's, if goals are random.
        """
        self.seconds = {}
        episode = in_units(episode, goal_unit(self.config, self.spaces))
        if rewards is not None and self.config.draws_goals:
            episode = rewarded(episode, rewards)
        before = self.steps
        self.steps += len(episode)
        self.episodes += 1
        metrics = self._episode_metrics(episode)
        self.remember(episode, rewards)
        low_key, high_key, novelty_key = jax.random.split(jax.random.fold_in(self.key, self.episodes), 3)
        count = jnp.asarray(len(episode))
        segments = jnp.asarray(-(-len(episode) // self.config.high.period))
        metrics |= self.train_low(low_key, count * self._updates)
        if not self.config.walks_map:
            metrics |= self.train_high(high_key, segments)
        if self.config.uses_novelty:
            metrics |= self.train_novelty(novelty_key, count)
        every = self.config.adjacency.every
        if self.config.uses_adjacency and before // every < self.steps // every:
            metrics |= self.train_adjacency()
        self.average(len(episode))
        return metrics | {f"seconds/{stage}": taken for stage, taken in self.seconds.items()}

    @property
    def _updates(self) -> int:
        """Updates of the low level per step."""
        eager = self.config.learns_eagerly and self.before + self.steps <= _EAGER
        return self.config.low.updates * (2 if eager else 1)

    def _episode_metrics(self, episode: Episode) -> Metrics:
        """Return what an episode shows of the learner's health, before it is learned from."""
        config, stages, state = self.config, self.stages, self.state
        low, high = ((level.networks, level.rewards) for level in (state.low, state.high))
        low, high, seen = jax.device_get((low, high, state.seen))
        metrics = episode_metrics(config, episode)
        views = views_of(config, seen)
        metrics |= low_value_metrics(config, stages.low, *low, views.low, episode)
        if self.map is None:
            metrics |= high_value_metrics(config, stages.high, *high, views.high, episode)
        else:
            metrics |= {"map/landmarks": float(len(self.map)), "map/radius": float(self.map.radius)}
            metrics |= {"map/speed": self.map.speed, "map/progress": self.map.progress}
            metrics["map/straight"] = straight_share(self.map.tries)
        self.matrix.add_trajectory(episode.achieved)
        return metrics | {"explored_cells": float(len(self.matrix)), "adjacent_share": self.matrix.adjacent_share}

    def remember(self, episode: Episode, rewards: Rewards | None = None) -> None:
        """Insert the episode into the buffers and the map, and its states into the novelty queue.

        With `rewards`, its segments are also remembered with goals in hindsight.
        """
        start = time.perf_counter()
        state, stages, config = self.state, self.stages, self.config
        low_buffer, high_buffer, novelty = state.low_buffer, state.high_buffer, state.novelty
        for block, count in blocks(low_rows(config, episode), config.buffer_size):
            low_buffer = stages.insert(low_buffer, block, count)
        if self.map is None:
            rows = [high_rows(config, episode)]
            if rewards is not None:
                rng = np.random.default_rng([config.seed, self.episodes, _HINDSIGHT])
                rows.append(hindsight_rows(config, episode, rewards, rng))
            for block, count in (part for each in rows for part in blocks(each, config.buffer_size)):
                high_buffer = stages.insert(high_buffer, block, count)
        else:
            starts, _ = episode.segments
            targets = subgoal_target(config.high.subgoals, episode.subgoal[starts], episode.achieved[starts])
            first = episode.steps_to_success
            reached = None if first is None else (first, episode.desired[first])
            self.map.add_episode(episode.achieved, targets, np.append(starts, len(episode)), reached)
            self.map.add_try(episode.achieved[0], episode.desired[0], episode.plan, episode.succeeded)
        if config.low.normalise:
            seen = updated_statistics(jax.device_get(state.seen), episode.observation)
            state = state._replace(seen=jax.tree.map(jnp.asarray, seen))
        if config.uses_novelty:
            states = blocks((episode.observation, episode.achieved), config.buffer_size)
            novelty = stages.update_queue(novelty, state.adjacency.network, states)
        self.state = state._replace(low_buffer=low_buffer, high_buffer=high_buffer, novelty=novelty)
        jax.block_until_ready(self.state.low_buffer.size)
        self.seconds["remember"] = time.perf_counter() - start

    def average(self, steps: int) -> None:
        """Move the averaged actors towards the current ones after an episode of `steps` steps.

        A gait that always falls in the same corner may appear in one episode and be gone a few episodes later; the
        average over many episodes behaves like most of them.
        """
        if self.state.averaged is None:
            return
        window = min(self.config.evaluation.average, self.steps / 10)
        share = jnp.asarray(min(1.0, steps / window), jnp.float32)
        self.state = self.state._replace(averaged=self.stages.average(self.state.averaged, self.state.actors, share))

    def train_low(self, key: jax.Array, count: jax.Array) -> Metrics:
        """Update the low level `count` times."""
        return self._run("low", self.stages.train_low, key, count)

    def train_high(self, key: jax.Array, count: jax.Array) -> Metrics:
        """Update the high level `count` times."""
        planning = jnp.asarray(self.before + self.steps >= self.config.landmarks.start)
        return self._run("high", self.stages.train_high, key, count, planning)

    def train_novelty(self, key: jax.Array, count: jax.Array) -> Metrics:
        """Update the novelty predictor `count` times."""
        return self._run("novelty", self.stages.train_novelty, key, count)

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

    def _run(self, stage: str, program: Callable[..., Any], *arguments: jax.Array) -> Metrics:
        """Run a stage's program on the state."""
        start = time.perf_counter()
        self.state, info = program(self.state, *arguments)
        return self._finish(stage, info, start)

    def _finish(self, stage: str, info: td3.Info, start: float) -> Metrics:
        """Wait for a stage, time it, and stop the run if anything in it is not finite.

        Raises:
            NotFiniteError: the stage, and its metrics.
        """
        values = {name: float(value) for name, value in jax.device_get(info).items()}
        self.seconds[stage] = time.perf_counter() - start
        finite = values.pop("finite")
        if not finite or not all(np.isfinite(value) for value in values.values()):
            raise NotFiniteError(
                f"NaN or infinity in the stage '{stage}' after {self.steps} steps (episode {self.episodes}): "
                + ", ".join(f"{name}={value:.4g}" for name, value in values.items())
            )
        return {f"{stage}/{name}": value for name, value in values.items()}
