"""Acting: the policy in NumPy, with the one subgoal clock that collecting episodes and `predict` share.

Imports neither JAX nor Gymnasium: this is what acts on a robot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from higl.algo.forward import MLP, actor_action
from higl.algo.plans import Plan
from higl.algo.subgoals import (
    Scheme,
    Views,
    goal_transition,
    high_input,
    low_input,
    no_statistics,
    subgoal_towards,
    views_of,
)
from higl.algo.walked import Chart, Walker
from higl.algo.wander import Wanderer
from higl.observations import PARTS, as_batches, with_achieved
from higl.settings.config import Config
from higl.text import counted

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.vector import VectorEnv


@dataclass(frozen=True)
class Spaces:
    """Sizes of a goal environment's spaces, and the range of its actions."""

    observation: int
    goal: int
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]

    @property
    def action(self) -> int:
        """Return the number of action dimensions."""
        return len(self.action_low)

    @classmethod
    def of(cls, env: gymnasium.Env | VectorEnv) -> Spaces:
        """Read the spaces of an environment; for a vector environment, those of a single one."""
        from gymnasium.vector import VectorEnv

        vector = isinstance(env, VectorEnv)
        observation: Any = env.single_observation_space if vector else env.observation_space
        action: Any = env.single_action_space if vector else env.action_space
        return cls(
            int(observation["observation"].shape[0]),
            int(observation["achieved_goal"].shape[0]),
            tuple(float(x) for x in action.low),
            tuple(float(x) for x in action.high),
        )


def goal_unit(config: Config, spaces: Spaces) -> np.ndarray:
    """Return the length that counts as 1 in each dimension of the goal space: [G]."""
    return np.broadcast_to(np.asarray(config.goal_unit, np.float32), (spaces.goal,)).copy()


def subgoal_limit(config: Config, spaces: Spaces) -> np.ndarray:
    """Return the largest subgoal in each dimension of the goal space, in its unit: [G]."""
    limit = np.broadcast_to(np.asarray(config.high.subgoal_range, np.float32), (spaces.goal,))
    return limit / goal_unit(config, spaces)


def used_range(config: Config, spaces: Spaces) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest action that are used, in the environment's units: [A], [A]."""
    low, high = np.asarray(spaces.action_low), np.asarray(spaces.action_high)
    unused = 0.5 * (1.0 - config.low.action_share) * (high - low)
    return low + unused, high - unused


# How strongly a body that may fall over acts without exploration, as a share of the actions it has learned.
_CALM = 0.8


def calmness(config: Config) -> float:
    """Return the factor on the low level's actions without exploration.

    A body whose torques are restrained (`low.action_share`) may fall over, and it falls less if it acts a little less
    strongly than it practised.
    """
    return _CALM if config.low.action_share < 1.0 else 1.0


@dataclass(frozen=True)
class PolicyState:
    """What a policy remembers between two steps, for one observation or a batch of N.

    `subgoal` [N, G] is the subgoal of the last step, `achieved` [N, G] the goal-space point it was pursued from; both
    are in units of the goal space. `clock` [N] is the number of steps since the episode began, `begins` [N] whether the
    last step began a segment. With a map there is a walker for each observation.
    """

    subgoal: np.ndarray
    achieved: np.ndarray
    clock: np.ndarray
    walkers: tuple[Walker, ...] = ()
    begins: np.ndarray | None = None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """How each walker goes to its goal; without a plan (random subgoals, or no goal) it counts as exploring."""
        return tuple(Plan.EXPLORE if walker.plan is None else walker.plan for walker in self.walkers)


class Policy:
    """Both levels' actors in NumPy. Acts on single observations and on batches.

    Args:
        config: The settings.
        spaces: Sizes and ranges of the environment's spaces.
        low_actor: The low level's network.
        high_actor: The high level's network; not used with a chart.
        views: How each level sees observations; not given: as if no state had been seen yet.
        chart: The map from which subgoals come instead.
    """

    def __init__(
        self,
        config: Config,
        spaces: Spaces,
        low_actor: MLP,
        high_actor: MLP,
        views: Views | None = None,
        chart: Chart | None = None,
    ):
        self.config = config
        self.period = config.high.period
        self.scheme: Scheme = config.high.subgoals
        self.low_actor, self.high_actor = low_actor, high_actor
        self.spaces = spaces
        self.views = views if views is not None else views_of(config, no_statistics(spaces.observation))
        self.chart = chart
        self._walker: Walker | None = None
        self.unit = goal_unit(config, spaces)
        self.limit = subgoal_limit(config, spaces)
        self.action_low, self.action_high = used_range(config, spaces)
        self.calm = calmness(config)
        self.low_sigma = config.low.exploration
        self.high_sigma = config.high.exploration
        self.random_sigma = config.high.random_sigma
        self.random_subgoals = False
        self.wanders = False
        """Whether episodes choose their goals themselves: in training without a goal."""

    def __repr__(self) -> str:
        config, spaces = self.config, self.spaces
        parts = [
            f"observation {self.observation_size}, goal {spaces.goal}, action {spaces.action}",
            *([f"a map of {counted(len(self.chart.points), 'landmark')}"] if self.chart is not None else []),
            f"a subgoal every {counted(self.period, 'step')}",
            f"of a run of {config.steps:,} steps",
        ]
        return f"<Policy({config.task!r}, algo={config.algo!r}, seed={config.seed}): {'; '.join(parts)}>"

    @property
    def observation_size(self) -> int:
        """Entries of `observation` that `predict` expects, before the achieved goal is added (`observe_achieved`)."""
        return self.spaces.observation - (self.spaces.goal if self.config.observe_achieved else 0)

    def predict(
        self,
        observation: Mapping[str, Any],
        state: PolicyState | None = None,
        episode_start: Any = None,
        deterministic: bool = True,
        *,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float64,
    ) -> tuple[np.ndarray, PolicyState]:
        """Return the action for an observation, and the state to give with the next one.

        Args:
            observation: The environment's dictionary, each part a vector [O], or a batch of them [N, O].
            state: What the last call returned; None at the start of an episode.
            episode_start: Where an episode begins (one truth value, or one for each of a batch): the state is not used.
            deterministic: Without exploration.
            rng: Source of the exploration; not given: the policy's own, from the seed of its run.
            dtype: Type of the numbers in the action.

        Raises:
            ValueError: the observation or the state does not fit the policy.
        """
        parts = self._parts(observation)
        count = len(parts["observation"])
        if state is None:
            state = self.begin(count)
        elif len(state.clock) != count:
            raise ValueError(f"predict: a state of {len(state.clock)} observations, and {count} observations")
        if episode_start is not None:
            begins = np.broadcast_to(np.asarray(episode_start, bool), (count,))
            state = replace(state, clock=np.where(begins, 0, state.clock))
        rng = None if deterministic else rng or self._generator
        action, state = self.step(parts["observation"], parts["achieved_goal"], parts["desired_goal"], state, rng)
        action = self.environment_action(action, dtype)
        return action[0] if np.ndim(observation["observation"]) == 1 else action, state

    def _parts(self, observation: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the parts of an observation as batches that fit the policy, the achieved goal in front if need be."""
        try:
            parts = as_batches(observation)
        except ValueError as error:
            raise ValueError(f"predict: {error}") from None
        if self.config.observe_achieved:
            parts = with_achieved(parts)
        for name, size in zip(PARTS, (self.spaces.observation, self.spaces.goal, self.spaces.goal), strict=True):
            shape = parts[name].shape
            if len(shape) != 2 or shape[1] != size or shape[0] != len(parts["observation"]):
                raise ValueError(f"predict: {name} has shape {shape}; expected {size} numbers for each observation")
        return parts

    @cached_property
    def _generator(self) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, 1])

    def begin(self, *batch: int) -> PolicyState:
        """Return the state at the start of an episode: for one observation, or for a batch of the given size."""
        goals = np.zeros((*batch, self.spaces.goal), np.float32)
        return PolicyState(goals, goals, np.zeros(batch, int))

    def step(
        self,
        observation: np.ndarray,
        achieved: np.ndarray,
        desired: np.ndarray,
        state: PolicyState,
        rng: np.random.Generator | None,
    ) -> tuple[np.ndarray, PolicyState]:
        """Return an action scaled to [-1, 1] and the next state; its `subgoal` is the one this action pursues.

        The subgoal clock: the high level proposes a subgoal every m steps (`high.period`), a map also when the body is
        there; in between, the subgoal follows the goal transition h(g, s, s'). Without a generator there is no
        exploration.
        """
        achieved, desired = achieved / self.unit, desired / self.unit
        walkers = self._walkers(achieved, state)
        due = state.clock % self.period == 0
        if walkers and not (rng is not None and self.random_subgoals):
            points = np.atleast_2d(achieved)
            due = np.reshape([walker.is_due(x) for walker, x in zip(walkers, points, strict=True)], due.shape)
        if np.all(due):
            subgoal, walkers = self._new_subgoal(observation, achieved, desired, walkers, due, rng)
        else:
            subgoal = goal_transition(self.scheme, state.subgoal, state.achieved, achieved)
            if np.any(due):
                fresh, walkers = self._new_subgoal(observation, achieved, desired, walkers, due, rng)
                subgoal = np.where(due[:, None], fresh, subgoal)
        action = self.act(observation, subgoal, rng)
        return action, PolicyState(subgoal, achieved, state.clock + 1, walkers, due)

    def _new_subgoal(
        self,
        observation: np.ndarray,
        achieved: np.ndarray,
        desired: np.ndarray,
        walkers: tuple[Walker, ...],
        due: np.ndarray,
        rng: np.random.Generator | None,
    ) -> tuple[np.ndarray, tuple[Walker, ...]]:
        """Return a random subgoal in the random phase at the start of a run, else the high level's or the map's."""
        if rng is not None and self.random_subgoals:
            return self.random_subgoal(achieved, rng), walkers
        if walkers:
            return self._walk(achieved, desired, walkers, due, rng)
        return self.propose(observation, achieved, desired, rng), walkers

    def _walkers(self, achieved: np.ndarray, state: PolicyState) -> tuple[Walker, ...]:
        """Return a walker for each observation: a new one where an episode begins."""
        if self.chart is None or not len(self.chart.points):
            return ()
        begins = np.atleast_1d(state.clock) == 0
        walkers = state.walkers or (None,) * len(begins)
        return tuple(
            (self._first_walker(self.chart) if new or walker is None else walker).see(point)
            for walker, new, point in zip(walkers, begins, np.atleast_2d(achieved), strict=True)
        )

    def _first_walker(self, chart: Chart) -> Walker:
        """Return the walker with which episodes begin: the same for all of them."""
        walker = self._walker
        if walker is None or walker.chart is not chart or isinstance(walker, Wanderer) != self.wanders:
            explore = self.config.landmarks.explore
            walker = Wanderer(chart, self.period, explore) if self.wanders else Walker(chart, self.period)
            self._walker = walker
        return walker

    def _walk(
        self,
        achieved: np.ndarray,
        desired: np.ndarray,
        walkers: tuple[Walker, ...],
        due: np.ndarray,
        rng: np.random.Generator | None,
    ) -> tuple[np.ndarray, tuple[Walker, ...]]:
        """Return the subgoals that lead along the map, for those observations whose segment begins."""
        generators = getattr(rng, "each", [rng] * len(walkers))
        targets, moved = np.atleast_2d(achieved).copy(), list(walkers)
        rows = zip(np.atleast_1d(due), targets, np.atleast_2d(desired), generators, strict=True)
        for place, (begins, here, goal, generator) in enumerate(rows):
            if begins:
                targets[place], moved[place] = walkers[place].target(here.copy(), goal, generator)
        subgoal = subgoal_towards(self.scheme, targets.reshape(achieved.shape), achieved)
        return np.clip(subgoal, -self.limit, self.limit).astype(np.float32), tuple(moved)

    def propose(
        self, observation: np.ndarray, achieved: np.ndarray, desired: np.ndarray, rng: np.random.Generator | None
    ) -> np.ndarray:
        """Return the high level's subgoal, with exploration noise if a generator is given. Goals are in units."""
        inputs = high_input(self.views.high, observation, achieved, desired)
        subgoal = actor_action(self.high_actor, self.limit, inputs)
        if rng is not None:
            subgoal = subgoal + rng.normal(0.0, self.high_sigma, subgoal.shape)
        return np.clip(subgoal, -self.limit, self.limit).astype(np.float32)

    def random_subgoal(self, achieved: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a random subgoal around the achieved point, as used at the start of a run (`random_subgoals`)."""
        offset = rng.normal(0.0, self.random_sigma, achieved.shape)
        subgoal = offset if self.scheme == "relative" else achieved + offset
        return np.clip(subgoal, -self.limit, self.limit).astype(np.float32)

    def act(self, observation: np.ndarray, subgoal: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """Return the low level's action scaled to [-1, 1], with exploration noise if a generator is given."""
        scale = np.float32(1.0 if rng is not None else self.calm)
        action = actor_action(self.low_actor, scale, low_input(self.views.low, observation, subgoal))
        if rng is not None:
            action = np.clip(action + rng.normal(0.0, self.low_sigma, action.shape), -1.0, 1.0)
        return action.astype(np.float32)

    def environment_action(self, action: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Return a scaled action in the environment's units and dtype, within the part of its range that is used."""
        scaled = self.action_low + (action + 1.0) * 0.5 * (self.action_high - self.action_low)
        return np.clip(scaled, self.action_low, self.action_high).astype(dtype)
