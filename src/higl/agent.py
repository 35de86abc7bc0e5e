"""The library's face: `HIGL`, `HRAC` and `HIRO`, agents that learn in any goal environment, predict, save and load."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import jax
import numpy as np
from gymnasium.vector import VectorEnv

from higl.algo.episodes import Episode, collect_episode
from higl.algo.learner import Learner, Metrics
from higl.algo.policy import Policy, PolicyState, Spaces
from higl.envs.adapt import make_vector, with_achieved
from higl.envs.check import check_env
from higl.envs.make import adapted, is_own, make_env
from higl.errors import SettingsError, TaskError
from higl.run.agent_file import load_agent, save_agent
from higl.run.checkpoint import Checkpoints, restore_learner
from higl.run.files import CHECKPOINTS, CONFIG, replace_file
from higl.run.folder import RunFolder
from higl.run.loop import Callback, Loop, Row
from higl.run.measure import Evaluation, Outcome
from higl.run.policy_file import load_policy, save_policy
from higl.run.process import compilation_cache
from higl.run.progress import Progress, Silent, make_progress
from higl.run.reading import is_run, read_config
from higl.run.seeds import MEASURING, episode_seed
from higl.run.training import Training, check_spaces
from higl.settings.config import Algorithm, Config, Preset, Reward
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.flat import flat
from higl.settings.layers import apply, to_toml
from higl.settings.presets import has_preset
from higl.settings.presets import preset as preset_of

# What says the task and the algorithm in Python.
_INSTEAD = {"task": "give the task's name as the environment", "algo": "use higl.HIGL, higl.HRAC or higl.HIRO"}

EnvironmentLike = str | gymnasium.Env | Callable[[], gymnasium.Env]


class Agent:
    """What `HIGL`, `HRAC` and `HIRO` have in common.

    Args:
        env: A task's short name, any Gymnasium id, an environment, or a function that makes one.
        reward: "sparse" or "dense", for the tasks that come with the package.
        seed: Seed of all that is random.
        preset: Family of presets, for the tasks that come with the package: "best" or "paper".
        test_env: Environment of the evaluations. Not given: the task's test mode; another of what `env` makes; or
            `env` itself.
        verbose: Tell what was derived, and show the progress of `learn`.
        settings: Any setting of `higl.settings.config`, as `landmarks={"coverage": 10}` or
            `**{"landmarks.coverage": 10}`; `num_envs=4` collects from four environments at once.

    An environment that no preset knows is looked at for a moment, and settings that fit it are derived and told.

    Raises:
        TaskError: the environment is none that can be learned in; the message says why.
        SettingsError: a setting is unknown, of the wrong type or out of range.
    """

    algo: ClassVar[Algorithm]

    def __init__(
        self,
        env: EnvironmentLike,
        *,
        reward: Reward = "sparse",
        seed: int = 0,
        preset: Preset = "best",
        test_env: EnvironmentLike | None = None,
        verbose: bool = True,
        **settings: Any,
    ):
        _use_cache()
        self.verbose = verbose
        self._given = flat(settings)
        for name in ("task", "algo"):
            if name in self._given:
                raise SettingsError(f"{name} = {self._given[name]!r}: not a setting of an agent; {_INSTEAD[name]}")
        self._source = _Source(env, test_env, reward)
        config = replace(preset_of(self._source.task, self.algo, preset), reward=self._source.reward, seed=seed)
        config = apply(config, {"preset": preset} | self._given)
        self.derived = []
        self._known = has_preset(config.task)
        if not self._known:
            say = print if verbose else None
            config, self.derived = derive_settings(config, self._given, self._source.looked_at(), say)
        self._begin(config)

    def _begin(self, config: Config, trained_for: Spaces | None = None) -> None:
        """Take settings on; nothing is learned yet. A policy that was `trained_for` other spaces is refused."""
        self.config = config
        self.spaces = Spaces.of(adapted(self._source.looked_at(), config.observe_achieved))
        if trained_for is not None:
            _check_same(self.spaces, trained_for)
        check_spaces(config, self.spaces)
        self.learner: Learner | None = None
        self._policy: Policy | None = None
        self._policy_episode = 0
        self._folder: Path | None = None
        self._failed = False

    # --- Learning ---

    @property
    def steps(self) -> int:
        """Return the environment steps learned from so far."""
        return self.learner.steps if self.learner is not None else 0

    def learn(
        self,
        steps: int,
        *,
        callback: Callback | None = None,
        log_dir: str | Path | None = None,
        processes: bool = False,
        checkpoint_minutes: float = 5.0,
    ) -> Self:
        """Train for so many environment steps (more), to the end of the episode in which they are reached.

        Args:
            steps: Environment steps, on top of those learned from before.
            callback: Called with the measurements of every episode and evaluation, a dict of numbers; `False` stops.
            log_dir: Run folder with settings, metrics, evaluations and checkpoints, as `higl train` writes it; all of
                `higl`'s commands read it, and `load` continues from it. Not given: nothing is written.
            processes: With `num_envs`, run each environment in a process of its own.
            checkpoint_minutes: Minutes between two checkpoints in `log_dir`.

        Raises:
            EpisodeError: the environment failed.
            NotFiniteError: something learned became NaN or infinite.
        """
        if steps < 1:
            raise SettingsError(f"learn: steps = {steps}: expected a number more than 0")
        self._check_can_learn("learn")
        if self._folder is not None and self._failed:  # its learner is beyond the checkpoint that it goes on from
            self.learner = None
            self._continue_run(self._folder)
        test_env = self._test_env(self._source)
        self._set_steps(steps)
        env = self._source.training_env(self.config, processes=processes)
        try:
            if log_dir is None and self._folder is None:
                self._learn_in_memory(env, test_env, callback)
            else:
                self._learn_in_folder(Path(log_dir or self._folder or ""), env, test_env, callback, checkpoint_minutes)
        finally:
            if isinstance(env, VectorEnv):
                with contextlib.suppress(EOFError, BrokenPipeError):  # a signal may have ended its processes already
                    env.close()
        return self

    def _check_can_learn(self, asked: str) -> None:
        if self.learner is None and self._policy is not None:
            raise SettingsError(
                f"{asked}: this agent was loaded from a policy, which can act and no more; "
                "save(path, full=True) of one that learned keeps all that learning needs, and so does a run folder"
            )

    def _test_env(self, source: _Source) -> gymnasium.Env:
        """Return an environment of evaluations, as this agent observes it."""
        env = adapted(source.test_env(), self.config.observe_achieved)
        _check_same(Spaces.of(env), self.spaces)
        return env

    def _set_steps(self, more: int) -> None:
        """Set how far to train; the first time, for an environment without a preset, the dates that go with it."""
        config = replace(self.config, steps=self.steps + more)
        if self.steps == 0 and not self._known:
            config, _ = derive_schedule(config, self._given, print if self.verbose else None)
            # One that has acted already was made without these dates; the next is drawn from the same seed.
            self.learner, self._policy = None, None
        self.config = config
        if self.learner is not None:
            self.learner.config = config

    def _learn_in_memory(
        self, env: gymnasium.Env | VectorEnv, test_env: gymnasium.Env, callback: Callback | None
    ) -> None:
        _InMemory(self._learner(), env, test_env, callback).run(self._progress())

    def _learn_in_folder(
        self,
        path: Path,
        env: gymnasium.Env | VectorEnv,
        test_env: gymnasium.Env,
        callback: Callback | None,
        checkpoint_minutes: float,
    ) -> None:
        progress = self._progress()
        if self._folder is not None and path != self._folder:
            raise SettingsError(f"learn: this agent's run is in {self._folder}; it cannot go on in {path}")
        if self._folder is None:
            if self.steps:
                raise SettingsError(
                    "learn: log_dir must be given from the first call of learn on, and this agent has learned without"
                )
            folder = RunFolder.create(path, self.config, progress.warn)
        else:
            folder = RunFolder.open(path, progress.warn)
            replace_file(path / CONFIG, to_toml(self.config).encode())
            folder.config = self.config
        try:
            training = Training(
                folder, env, test_env, progress, 60 * checkpoint_minutes, callback, self._how_to_continue(path)
            )
            # Already now: a callback may ask for the policy, and after a failure the next call goes on in the folder.
            self.learner, self._policy, self._folder = training.learner, None, path
            self._failed = True
            code = training.run(raises=True)
            self._failed = False
        finally:
            folder.close()
        if code == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        if code > 128:
            raise SystemExit(code)

    def _how_to_continue(self, path: Path) -> str | None:
        """Return the Python that continues a run whose environment the command line cannot make."""
        return None if self._source.has_name else f"{type(self).__name__}.load({str(path)!r}, env).learn(...)"

    def _learner(self) -> Learner:
        if self.learner is None:
            self.learner = Learner(self.config, self.spaces)
        return self.learner

    def _progress(self) -> Progress:
        return make_progress(quiet=not self.verbose)

    # --- Acting ---

    @property
    def policy(self) -> Policy:
        """Return the policy that acts: of the averaged actors, where the settings average."""
        learner = self.learner
        if self._policy is None or (learner is not None and learner.episodes != self._policy_episode):
            learner = self._learner()
            self._policy, self._policy_episode = learner.tested_policy, learner.episodes
        return self._policy

    def predict(
        self,
        observation: Mapping[str, Any],
        state: PolicyState | None = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, PolicyState]:
        """Return the action for an observation, and the state to give with the next one.

        Args:
            observation: The environment's dictionary, each part a vector [O], or a batch of them [N, O].
            state: What the last call returned; None at the start of an episode.
            episode_start: Where an episode begins (one truth value, or one for each of a batch): the state is not used.
            deterministic: Without exploration.
        """
        parts = self._parts(observation)
        policy = self.policy
        rng = None if deterministic else self._rng()
        count = len(parts["observation"])
        begins = np.broadcast_to(np.asarray(False if episode_start is None else episode_start, bool), (count,))
        if state is None:
            state = policy.begin(count)
        elif len(state.clock) != count:
            raise ValueError(f"predict: a state of {len(state.clock)} observations, and {count} observations")
        state = replace(state, clock=np.where(begins, 0, state.clock))
        action, state = policy.step(parts["observation"], parts["achieved_goal"], parts["desired_goal"], state, rng)
        action = policy.environment_action(action, self._source.action_dtype)
        single = np.ndim(observation["observation"]) == 1
        return action[0] if single else action, state

    def _parts(self, observation: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the parts of an observation as batches in single precision, the achieved goal in front if need be."""
        names = ("observation", "achieved_goal", "desired_goal")
        try:
            parts = {name: np.atleast_2d(np.array(observation[name], np.float32)) for name in names}
        except (KeyError, TypeError, IndexError):
            raise ValueError(f"predict: the observation must be a dict of {', '.join(names)}") from None
        if self.config.observe_achieved:
            parts = with_achieved(parts)
        for name, size in zip(names, (self.spaces.observation, self.spaces.goal, self.spaces.goal), strict=True):
            shape = parts[name].shape
            if len(shape) != 2 or shape[1] != size or shape[0] != len(parts["observation"]):
                raise ValueError(f"predict: {name} has shape {shape}; expected {size} numbers for each observation")
        return parts

    def _rng(self) -> np.random.Generator:
        if not hasattr(self, "_generator"):
            self._generator = np.random.default_rng([self.config.seed, 1])
        return self._generator

    # --- Saving ---

    def save(self, path: str | Path, *, full: bool = False) -> None:
        """Write the policy into a file: what acting needs, and the settings. `higl eval` reads it too.

        With `full`, write all that was learned and remembered: an agent that is loaded from it learns on.
        """
        path = Path(path)
        if full:
            self._check_can_learn("save(full=True)")
        path.parent.mkdir(parents=True, exist_ok=True)
        if full:
            save_agent(path, self._learner(), self.config)
        else:
            save_policy(path, self.policy, self.config, self.spaces)

    @classmethod
    def load(
        cls, path: str | Path, env: EnvironmentLike | None = None, *, test_env: EnvironmentLike | None = None
    ) -> Self:
        """Return the agent of a file that `save` wrote, of a policy file, or of a run folder.

        An agent of a run folder, or of a file saved with `full`, learns on; one of a policy acts. Nothing that is read
        can execute code.

        Args:
            path: The file or folder.
            env: The environment; not given: made by the name of the task.
            test_env: Environment of the evaluations, as for a new agent.

        Raises:
            PolicyFileError: the file is damaged, or none of ours.
            CheckpointError: the run's checkpoints are damaged.
            TaskError: the environment has other spaces than the one trained in.
        """
        path = Path(path)
        loaded = None if is_run(path) else load_agent(path)
        if is_run(path):
            policy, config = None, read_config(path)
        elif loaded is not None:
            policy, config = None, loaded[0]
        else:
            policy, config = load_policy(path)
        agent = cls._with_settings(path, config, env, test_env, policy.spaces if policy is not None else None)
        agent._policy = policy
        if loaded is not None:
            restore_learner(agent._learner(), *loaded[1:])
        elif policy is None:
            agent._continue_run(path)
        return agent

    @classmethod
    def _with_settings(
        cls,
        path: Path,
        config: Config,
        env: EnvironmentLike | None,
        test_env: EnvironmentLike | None,
        trained_for: Spaces | None,
    ) -> Self:
        """Return an agent with the settings of one that was saved."""
        if cls.algo != config.algo:
            raise SettingsError(f"{path} was trained with {config.algo}: load it with {config.algo.upper()}.load")
        _use_cache()
        agent = cls.__new__(cls)
        agent.verbose, agent._given, agent.derived, agent._known = True, {}, [], True
        agent._source = _Source(config.task if env is None else env, test_env, config.reward)
        try:
            agent._begin(config, trained_for)
        except TaskError as error:
            if env is not None:
                raise
            raise TaskError(f"{error}; give the environment: {cls.__name__}.load(path, env)") from None
        return agent

    def _continue_run(self, folder: Path) -> None:
        """Take over what a run's newest checkpoint holds, and go on in its folder."""
        found = Checkpoints(folder / CHECKPOINTS).load(Silent().warn)
        if found is not None:
            restore_learner(self._learner(), *found)
        self._folder = folder


class HIGL(Agent):
    """Hierarchical reinforcement learning guided by landmarks (HIGL); see `higl.agent.Agent` for the arguments."""

    algo = "higl"


class HRAC(Agent):
    """The same without landmarks: subgoals are held within reach of the current state."""

    algo = "hrac"


class HIRO(Agent):
    """The same with neither landmarks nor the adjacency network."""

    algo = "hiro"


def evaluate(agent: Agent, env: EnvironmentLike | None = None, episodes: int = 100, *, seed: int = 0) -> Evaluation:
    """Run episodes without exploration and return what came out.

    Args:
        agent: The agent.
        env: Environment; not given: the agent's own test environment.
        episodes: Number of episodes.
        seed: The same seed gives the same episodes.
    """
    if episodes < 1:
        raise ValueError(f"evaluate: episodes = {episodes}: expected 1 or more")
    source = agent._source if env is None else _Source(env, None, agent.config.reward)
    test_env = agent._test_env(source)
    seeds = [episode_seed(seed, MEASURING, index) for index in range(episodes)]
    policy = agent.policy
    return Evaluation(tuple(Outcome.of(collect_episode(test_env, policy, own, explore=False)) for own in seeds))


class _InMemory(Loop):
    """A run without a folder: its progress is shown, and nothing is written."""

    progress: Progress

    def run(self, progress: Progress) -> None:
        """Train to the end."""
        self.progress = progress
        progress.begin(f"{self.config.task} ({self.config.algo})", self.learner.steps, self.config.steps)
        try:
            # Not in the middle of learning from an episode: an agent that is interrupted can learn on.
            with self.noting([signal.SIGINT], "stopping after this stage", signal.default_int_handler):
                self.loop()
        finally:
            progress.end()
        if self.stop_signal is not None:
            raise KeyboardInterrupt

    def on_episode(self, metrics: Metrics) -> None:
        """Show an episode."""
        self.progress.episode(self.learner.steps, metrics)

    def on_evaluation(self, row: Row, episodes: list[Episode]) -> None:
        """Show an evaluation."""
        self.progress.evaluation(row)


class _Source:
    """Where environments come from: a name, an environment, or a function that makes one."""

    def __init__(self, env: EnvironmentLike, test_env: EnvironmentLike | None, reward: Reward):
        self._env, self._test_env, self._reward = env, test_env, reward
        self._first: gymnasium.Env | None = None
        self.has_name = isinstance(env, str)
        self.task = env if isinstance(env, str) else _name(self.looked_at())

    @property
    def reward(self) -> Reward:
        """Return the reward of one of our tasks: as it was asked for, or as the environment given was made with."""
        spec = None if self.has_name else self.looked_at().spec
        return spec.kwargs.get("reward", self._reward) if spec is not None and is_own(spec.id) else self._reward

    def looked_at(self) -> gymnasium.Env:
        """Return the first environment, checked."""
        if self._first is None:
            self._first = self._make(self._env, "train")
            name = self._env if isinstance(self._env, str) else _name(self._first)
            check_env(self._first, name)
        return self._first

    @property
    def action_dtype(self) -> Any:
        """Return the type of number that the environment takes."""
        return self.looked_at().action_space.dtype

    def training_env(self, config: Config, *, processes: bool) -> gymnasium.Env | VectorEnv:
        """Return the environment, or environments, to collect episodes from."""
        if config.num_envs == 1:
            return adapted(self.looked_at(), config.observe_achieved)
        if isinstance(self._env, gymnasium.Env):
            raise SettingsError(
                "num_envs: one environment cannot be several; give its Gymnasium id or a function that makes it"
            )
        return make_vector(
            [_Factory(self._env, self._reward, config.observe_achieved)] * config.num_envs, processes=processes
        )

    def test_env(self) -> gymnasium.Env:
        """Return the environment of evaluations."""
        if self._test_env is not None:
            env = self._make(self._test_env, "test")
            check_env(env, _name(env))
            return env
        return self._make(self._env, "test")

    def _make(self, source: EnvironmentLike, mode: str) -> gymnasium.Env:
        return _make(source, self._reward, mode)


@dataclass(frozen=True)
class _Factory:
    """Makes an environment in the process that it is called in."""

    source: EnvironmentLike
    reward: Reward
    observe_achieved: bool

    def __call__(self) -> gymnasium.Env:
        return adapted(_make(self.source, self.reward, "train"), self.observe_achieved)


def _make(source: EnvironmentLike, reward: Reward, mode: str) -> gymnasium.Env:
    if isinstance(source, str):
        return make_env(source, reward, mode)
    env = source() if callable(source) and not isinstance(source, gymnasium.Env) else source
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"expected a Gymnasium environment, a function that makes one, or a name, not {type(env)}")
    return env


def _check_same(here: Spaces, trained_for: Spaces) -> None:
    """Refuse an environment with other spaces than the agent's own.

    Raises:
        TaskError: what it has, and what it should have.
    """
    if here != trained_for:
        raise TaskError(f"the agent is one for {_in_words(trained_for)}; this environment has {_in_words(here)}")


def _in_words(spaces: Spaces) -> str:
    low, high = ([f"{end:g}" for end in ends] for ends in (spaces.action_low, spaces.action_high))
    ranges = ", ".join(f"{a} to {b}" for a, b in zip(low, high, strict=True))
    return f"{spaces.observation} numbers observed, {spaces.goal} of a goal, and actions of {ranges}"


def _name(env: gymnasium.Env) -> str:
    """Return the id that makes such an environment, or a name that nothing is made by.

    An environment that was made with options, or wrapped, is another than its id makes: `higl/PointMaze-v0+Flip`.
    """
    spec = env.spec
    if spec is None:
        return type(env.unwrapped).__name__
    registered = gymnasium.registry.get(spec.id)
    usual = registered.kwargs | {"max_episode_steps": registered.max_episode_steps} if registered else {}
    made = spec.kwargs | {"max_episode_steps": spec.max_episode_steps}
    if is_own(spec.id):
        usual |= {"mode": "train", "reward": made.get("reward")}  # the reward is a setting of its own
    usual["render_mode"] = made.get("render_mode")
    options = [name for name, value in made.items() if name not in usual or repr(usual[name]) != repr(value)]
    return "+".join([spec.id, *sorted(options), *(wrapper.name for wrapper in spec.additional_wrappers)])


def _use_cache() -> None:
    """Keep compiled programs between processes, unless JAX has been told where to."""
    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        cache = compilation_cache()
        if cache is not None:
            jax.config.update("jax_compilation_cache_dir", str(cache))
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
