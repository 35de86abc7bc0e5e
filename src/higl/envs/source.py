"""Environments from whatever a user gives: the name of a task, an environment, or a function that makes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from higl.envs.adapt import HideGoal, make_vector
from higl.envs.check import check_env
from higl.envs.make import adapted, is_own, make_env
from higl.envs.trust import check_imported, import_module_of
from higl.errors import SettingsError, TaskError

Single = str | gymnasium.Env | Callable[[], gymnasium.Env]

EnvironmentLike = Single | Sequence[Callable[[], gymnasium.Env]] | VectorEnv
"""A task's short name or Gymnasium id, an environment, or a function that makes one; or several such functions, in a
list or in Gymnasium's `SyncVectorEnv` or `AsyncVectorEnv`."""


def import_named(*envs: EnvironmentLike | None) -> None:
    """Import the modules of environments that the user gave by name.

    Raises:
        TaskError: there is no such module, or importing it fails.
    """
    for env in envs:
        if isinstance(env, str):
            import_module_of(env)


class Source:
    """Makes the training and test environments of one agent. Imports no modules: see `import_named`.

    Args:
        env: where training environments come from.
        test_env: where test environments come from. None: the task's test mode, another of what `env` makes, or `env`
            itself.
        reward: "sparse" or "dense"; only our own tasks use it.
        hide_goal: hide desired goals and rewards from training, see `HideGoal`.

    Attributes:
        has_name: whether `env` is a name, so that the command line can make the same environment.
        task: that name, or the name of the environment, see `environment_name`.
        count: number of environments, if several were given; else None.
    """

    def __init__(
        self,
        env: EnvironmentLike,
        test_env: EnvironmentLike | None = None,
        reward: str = "sparse",
        *,
        hide_goal: bool = False,
    ):
        self._hide_goal = hide_goal
        self._factories = _factories(env)
        self.count = None if self._factories is None else len(self._factories)
        self._processes = isinstance(env, AsyncVectorEnv)
        self._env, self._test_env, self._reward = _single(env), None if test_env is None else _single(test_env), reward
        self._first: gymnasium.Env | None = None
        self.has_name = isinstance(env, str)
        self.task = env if isinstance(env, str) else environment_name(self.first)

    @property
    def test_name(self) -> str | None:
        """Name of the test environment, if one was given by its name."""
        return self._test_env if isinstance(self._test_env, str) else None

    @property
    def reward(self) -> str:
        """Reward of one of our own tasks: the one that a given environment was made with, else as asked for."""
        spec = None if self.has_name else self.first.spec
        return spec.kwargs.get("reward", self._reward) if spec is not None and is_own(spec.id) else self._reward

    @property
    def first(self) -> gymnasium.Env:
        """The first training environment, checked; the same object every time."""
        if self._first is None:
            self._first = _make(self._env, self._reward, "train", hide_goal=self._hide_goal)
            if not self.has_name:  # `make_env` has checked the others
                check_env(self._first, environment_name(self._first))
        return self._first

    @property
    def action_dtype(self) -> Any:
        """Type of the numbers in an action."""
        return self.first.action_space.dtype

    def training_env(self, *, num_envs: int, observe_achieved: bool, processes: bool) -> gymnasium.Env | VectorEnv:
        """Return the training environment, or a vector environment if `num_envs` is more than 1.

        With `processes`, each environment of a vector runs in a process of its own.

        Raises:
            SettingsError: several are asked for, and only one environment was given.
        """
        if self.count not in (None, num_envs):
            raise SettingsError(f"num_envs = {num_envs}, but {self.count} environments were given")
        if num_envs == 1:
            return adapted(self.first, observe_achieved)
        if isinstance(self._env, gymnasium.Env):
            raise SettingsError(
                "num_envs: one environment cannot be copied; give its Gymnasium id or a function that makes it"
            )
        if isinstance(self._env, str):
            check_imported(self._env)
        factories = [
            _Factory(each, self._reward, observe_achieved, self._hide_goal)
            for each in self._factories or [self._env] * num_envs
        ]
        return make_vector(factories, processes=processes or self._processes)

    def test_env(self, *, observe_achieved: bool) -> gymnasium.Env:
        """Return the environment of the evaluations."""
        env = _make(self._env if self._test_env is None else self._test_env, self._reward, "test")
        if self._test_env is not None and not isinstance(self._test_env, str):
            check_env(env, environment_name(env))
        return adapted(env, observe_achieved)


@dataclass(frozen=True)
class _Factory:
    """Makes a training environment in the process that calls it, for a task that the user has allowed."""

    source: Single
    reward: str
    observe_achieved: bool
    hide_goal: bool

    def __call__(self) -> gymnasium.Env:
        import_named(self.source)
        return adapted(_make(self.source, self.reward, "train", hide_goal=self.hide_goal), self.observe_achieved)


def _factories(env: EnvironmentLike) -> list[Callable[[], gymnasium.Env]] | None:
    """Return the functions that make each of several environments; None if one environment was given.

    Raises:
        TaskError: there are none, or the vector environment was not made of such functions.
    """
    if isinstance(env, VectorEnv):
        # Only these: others run many environments in one program, and their episodes cannot have seeds of their own.
        if not isinstance(env, (SyncVectorEnv, AsyncVectorEnv)):
            raise TaskError(
                f"{type(env).__name__} cannot be taken apart into single environments: give a Gymnasium id or a "
                f"function that makes one of them, and num_envs={env.num_envs}"
            )
        return list(env.env_fns)
    if isinstance(env, Sequence) and not isinstance(env, str):
        if not env or not all(callable(each) and not isinstance(each, gymnasium.Env) for each in env):
            raise TaskError("a list of environments must hold functions that each make one: [make_env, make_env]")
        return list(env)
    return None


def _single(env: EnvironmentLike) -> Single:
    """Return where one environment comes from, if several may be given."""
    factories = _factories(env)
    single: Any = env if factories is None else factories[0]
    return single


def _make(source: Single, reward: str, mode: str, *, hide_goal: bool = False) -> gymnasium.Env:
    if isinstance(source, str):
        return make_env(source, reward, mode, hide_goal=hide_goal)
    env = source() if callable(source) and not isinstance(source, gymnasium.Env) else source
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"expected a Gymnasium environment, a function that makes one, or a name, not {type(env)}")
    return HideGoal(env) if hide_goal else env


def environment_name(env: gymnasium.Env) -> str:
    """Return the Gymnasium id that makes such an environment, or a name that is not an id.

    An environment that was made with options, or wrapped, differs from what its id makes: `higl/PointMaze-v0+Flip`.
    """
    env = env.env if isinstance(env, HideGoal) else env
    spec = env.spec
    if spec is None:
        return type(env.unwrapped).__name__
    registered = gymnasium.registry.get(spec.id)
    usual = registered.kwargs | {"max_episode_steps": registered.max_episode_steps} if registered else {}
    made = spec.kwargs | {"max_episode_steps": spec.max_episode_steps}
    if is_own(spec.id):
        usual |= {"mode": "train", "reward": made.get("reward")}  # the reward is a setting
    usual["render_mode"] = made.get("render_mode")
    options = [name for name, value in made.items() if name not in usual or repr(usual[name]) != repr(value)]
    return "+".join([spec.id, *sorted(options), *(wrapper.name for wrapper in spec.additional_wrappers)])
