"""The library's interface: `HIGL`, `HRAC` and `HIRO`, agents that learn in any goal-conditioned environment."""

from __future__ import annotations

import contextlib
import inspect
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from higl.algo.learner import Learner
from higl.algo.policy import Policy, PolicyState, Spaces
from higl.envs.make import adapted
from higl.envs.source import EnvironmentLike, Source, import_named
from higl.envs.trust import is_imported, would_import
from higl.errors import SettingsError, TaskError
from higl.run.agent_file import load_agent, save_agent
from higl.run.checkpoint import Checkpoints, restore_learner, restore_newest
from higl.run.checks import check_goals, check_same_spaces, check_spaces
from higl.run.files import CHECKPOINT_MINUTES, CHECKPOINTS
from higl.run.loop import Loop, train_in_memory
from higl.run.measure import Evaluation, measuring_seeds
from higl.run.measure import evaluate as run_episodes
from higl.run.observers import Callback, CallbackObserver, Observer
from higl.run.policy_file import load_policy, save_policy
from higl.run.process import use_compilation_cache
from higl.run.progress import Silent, make_progress
from higl.run.reading import is_run, read_config, read_facts
from higl.run.trackers import make_tracker
from higl.run.training import open_training
from higl.settings.config import Algorithm, Config, Preset, Reward
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.flat import flat
from higl.settings.layers import SEED_LIMIT, SEED_RANGE, build_config
from higl.settings.presets import has_rewards, is_derived

# What to write instead of arguments that are no settings: how the task and the algorithm are chosen in Python, and the
# names that Stable-Baselines3 has for things.
_INSTEAD = {
    "task": "give the task's name as the environment",
    "algo": "use higl.HIGL, higl.HRAC or higl.HIRO",
    "policy": "there is none to choose; hidden=(256, 256) sets the size of the networks",
    "policy_kwargs": "hidden=(256, 256) sets the size of the networks",
    "gamma": "each level has its own: low={'discount': 0.95}",
    "tau": "it is fixed, 0.005 for both levels",
    "gradient_steps": "low={'updates': 2} sets the updates per step",
    "learning_starts": "there is none: exploration ends when the low level moves, or at high={'random_steps': 50_000}",
    "train_freq": "there is none: it learns after each episode; low={'updates': 2} sets the updates per step",
    "replay_buffer_class": "there is none to choose; buffer_size=1_000_000 sets its size",
    "replay_buffer_kwargs": "there are none; buffer_size=1_000_000 sets the size of the buffer",
    "device": "JAX uses a GPU if jax[cuda12] is installed; the variable JAX_PLATFORMS=cpu keeps it off",
    "n_envs": "use num_envs",
    "tensorboard_log": "use learn(..., log_dir='runs/first'): the run folder holds TensorBoard events, too",
}


class Agent:
    """Base class of `HIGL`, `HRAC` and `HIRO`.

    Args:
        env: A task's short name, any Gymnasium id, an environment, or a function that makes one. For several at once: a
            list of such functions, or a vector environment that Gymnasium made of them (`gymnasium.make_vec`).
        reward: "sparse" or "dense", for the tasks that come with the package.
        seed: Seed of all randomness.
        preset: Preset to start from: "best", one recipe for every environment, or "paper", the paper's settings.
        test_env: Environment of the evaluations. Not given: the task's test mode; another of what `env` makes; or
            `env` itself.
        verbose: 0: print nothing; 1: what matters of the derived settings, and the progress of `learn`; 2: all derived
            settings with their reasons.
        num_envs: Number of environments that collect episodes at the same time.
        low: Settings of the low level, such as `{"exploration": 0.1}`; not given: from the preset, or derived.
        high: Settings of the high level.
        adjacency: Settings of the adjacency network.
        novelty: Settings of random network distillation.
        landmarks: Settings of landmarks and planner, such as `{"coverage": 10, "novelty": 10}`.
        evaluation: Settings of the evaluations during training, such as `{"every": 1000, "episodes": 10}`.
        settings: Any other setting: `hidden`, `batch_size`, `buffer_size`, `precision`, `time_limit`,
            `observe_achieved`; or one by its dotted name, `**{"landmarks.coverage": 10}`. The page "Settings" lists
            them all.

    Settings that depend on the environment are derived from its spaces and a few random episodes, and printed; only
    those of the preset "paper" for the paper's own tasks are not.

    Raises:
        TaskError: the environment cannot be learned in; the message says why.
        SettingsError: a setting is unknown, of the wrong type or out of range.
    """

    algo: ClassVar[Algorithm]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        shared = inspect.getdoc(Agent) or ""  # so that `help(HIGL)` shows the arguments
        cls.__signature__ = inspect.signature(cls.__init__.__get__(cls))  # not that of `__new__`
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{shared.partition(chr(10) * 2)[2]}"

    def __new__(cls, *positional: Any, **named: Any) -> Self:
        """Reject `HIGL("MlpPolicy", env)`, as Stable-Baselines3 has it, with what to write instead."""
        is_policy = bool(positional) and isinstance(positional[0], str) and positional[0].endswith("Policy")
        if is_policy or len(positional) > 1:
            given = ", ".join(repr(value) if isinstance(value, str) else "..." for value in positional)
            raise SettingsError(
                f"{cls.__name__}({given}): write {cls.__name__}(env), with all other arguments by name, such as "
                f"seed=0; as to the policy, {_INSTEAD['policy']}"
            )
        return super().__new__(cls)

    def __init__(
        self,
        env: EnvironmentLike,
        *,
        reward: Reward = "sparse",
        seed: int = 0,
        preset: Preset = "best",
        test_env: EnvironmentLike | None = None,
        verbose: int = 1,
        num_envs: int | None = None,
        low: Mapping[str, Any] | None = None,
        high: Mapping[str, Any] | None = None,
        adjacency: Mapping[str, Any] | None = None,
        novelty: Mapping[str, Any] | None = None,
        landmarks: Mapping[str, Any] | None = None,
        evaluation: Mapping[str, Any] | None = None,
        **settings: Any,
    ):
        use_compilation_cache()
        self.verbose = verbose
        named: dict[str, Any] = {"low": low, "high": high, "adjacency": adjacency, "novelty": novelty}
        named |= {"landmarks": landmarks, "evaluation": evaluation, "num_envs": num_envs}
        self._given = flat({name: value for name, value in named.items() if value is not None} | settings)
        for name in settings.keys() & _INSTEAD.keys():
            raise SettingsError(f"{name} = {settings[name]!r}: not a setting of an agent; {_INSTEAD[name]}")
        import_named(env, test_env)
        self._source = Source(env, test_env, reward, hide_goal=self._given.get("goal") == "none")
        if self._source.count is not None:
            self._given.setdefault("num_envs", self._source.count)
        named = {"task": self._source.task, "algo": self.algo, "preset": preset}
        config = build_config(named | {"reward": self._source.reward, "seed": seed} | self._given)
        self.derived = []
        self._derives = is_derived(config)
        if self._derives:
            say = print if verbose else None
            config, self.derived = derive_settings(config, self._given, self._source.first, say, brief=verbose < 2)
        self._begin(config)

    def _begin(self, config: Config, trained_for: Spaces | None = None) -> None:
        """Set the settings of an agent that has learned nothing. Reject spaces other than it was `trained_for`."""
        self.config = config
        self.spaces = Spaces.of(adapted(self._source.first, config.observe_achieved))
        if trained_for is not None:
            check_same_spaces(self.spaces, trained_for)
        check_spaces(config, self.spaces)
        check_goals(config, self._source.first)
        self.learner: Learner | None = None
        self._policy: Policy | None = None
        self._policy_episode = 0
        self._folder: Path | None = None
        self._failed = False

    def __repr__(self) -> str:
        config = self.config
        parts = [repr(config.task), *([f"reward={config.reward!r}"] if has_rewards(config.task) else [])]
        parts += [f"preset={config.preset!r}"] * (config.preset != "best") + [f"seed={config.seed}"]
        parts += [f"num_envs={config.num_envs}"] * (config.num_envs > 1)
        learned = "acts only" if self.learner is None and self._policy is not None else f"{self.steps:,} steps learned"
        return f"<{type(self).__name__}({', '.join(parts)}): {learned}>"

    # --- Learning ---

    @property
    def steps(self) -> int:
        """Environment steps learned from so far."""
        return self.learner.steps if self.learner is not None else 0

    def learn(
        self,
        steps: float | None = None,
        *,
        total_timesteps: float | None = None,
        callback: Callback | Sequence[Callback] | None = None,
        log_dir: str | Path | None = None,
        tracker: str | None = None,
        processes: bool = False,
        checkpoint_minutes: float = CHECKPOINT_MINUTES,
    ) -> Self:
        """Train for a number of environment steps, to the end of the episode in which it is reached.

        Args:
            steps: Environment steps, in addition to those of earlier calls.
            total_timesteps: The same, under the name that Stable-Baselines3 has for it.
            callback: A function, or several, called with the measurements of every episode and evaluation, a dict of
                numbers; returning `False` stops training. After an episode it has `step`, `episode`, `time` (seconds)
                and the learner's measurements (`episode/success`, `low/critic_loss`, ...); after an evaluation
                `step`, `episode` and `evaluation/success`, `evaluation/return`, ...; the page "The run folder" lists
                them. `higl.callbacks` has ready-made ones.
            log_dir: Run folder with settings, metrics, evaluations and checkpoints, like that of `higl train`; all
                commands read it, and `load` continues from it. Not given: nothing is written.
            tracker: Keep the record of the run in `log_dir` elsewhere, too: "wandb", "trackio", or your own class as
                "module:Class". It works in a process of its own, and a failure does not stop the run.
            processes: With `num_envs`, run each environment in a process of its own.
            checkpoint_minutes: Minutes between two checkpoints in `log_dir`.

        Raises:
            EpisodeError: the environment failed.
            NotFiniteError: a learned quantity became NaN or infinite.
        """
        steps = _whole_steps(steps, total_timesteps)
        callbacks = [callback] if callable(callback) else list(callback or [])
        self._check_can_learn("learn")
        if tracker is not None:
            if log_dir is None and self._folder is None:
                raise SettingsError("learn: a tracker reads the run folder: give log_dir, too")
            make_tracker(tracker)  # fail here, before anything is written
        if self._folder is not None and self._failed:  # its learner is ahead of the checkpoint to continue from
            self.learner = None
            self._continue_run(self._folder)
        test_env = self._test_env(self._source)
        self._set_steps(steps)
        env = self._source.training_env(
            num_envs=self.config.num_envs, observe_achieved=self.config.observe_achieved, processes=processes
        )
        for each in callbacks:
            if begin := getattr(each, "begin", None):
                begin(self)
        try:
            if log_dir is None and self._folder is None:
                observers = [self._progress(), *map(CallbackObserver, callbacks)]
                train_in_memory(Loop(self._learner(), env, test_env, observers))
            else:
                options: dict[str, Any] = {"callbacks": callbacks, "checkpoint_minutes": checkpoint_minutes}
                options |= {"trackers": [] if tracker is None else [tracker], "test_env_name": self._source.test_name}
                self._learn_in_folder(Path(log_dir or self._folder or ""), env, test_env, **options)
        finally:
            if isinstance(env, VectorEnv):
                with contextlib.suppress(EOFError, BrokenPipeError):  # a signal may have ended its processes
                    env.close()
        return self

    def _check_can_learn(self, asked: str) -> None:
        if self.learner is None and self._policy is not None:
            raise SettingsError(
                f"{asked}: this agent was loaded from a policy file, which can only act; "
                "to continue learning, load a run folder or a file written by save(path, full=True)"
            )

    def _test_env(self, source: Source) -> gymnasium.Env:
        """Return a test environment, checked to have this agent's spaces."""
        env = source.test_env(observe_achieved=self.config.observe_achieved)
        check_same_spaces(Spaces.of(env), self.spaces)
        return env

    def _set_steps(self, more: int) -> None:
        """Set how far to train; the first time, derive the schedule if settings are derived."""
        config = replace(self.config, steps=self.steps + more)
        if self.steps == 0 and self._derives:
            say = print if self.verbose else None
            config, _ = derive_schedule(config, self._given, say, brief=self.verbose < 2, found=self.derived)
            # A learner that has acted was made without this schedule; a new one is drawn from the same seed.
            self.learner, self._policy = None, None
        self.config = config
        if self.learner is not None:
            self.learner.config = config

    def _learn_in_folder(
        self,
        path: Path,
        env: gymnasium.Env | VectorEnv,
        test_env: gymnasium.Env,
        **options: Any,
    ) -> None:
        """Train in a run folder; the options are those of `open_training`."""
        if self._folder is not None and path != self._folder:
            raise SettingsError(f"learn: this agent's run is in {self._folder}; it cannot continue in {path}")
        if self._folder is None and self.steps:
            raise SettingsError(
                "learn: log_dir must be given in the first call of learn, and this agent has learned without one"
            )
        with open_training(
            path,
            self.config,
            env,
            test_env,
            new=self._folder is None,
            progress=self._progress(),
            has_id=self._source.has_name,
            **options,
        ) as training:
            # Now: a callback may use the policy, and after a failure the next call continues in the folder.
            self.learner, self._policy, self._folder = training.learner, None, path
            self._failed = True
            code = training.run(raises=True)
            self._failed = False
        if code == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        if code > 128:
            raise SystemExit(code)

    def _learner(self) -> Learner:
        if self.learner is None:
            self.learner = Learner(self.config, self.spaces)
        return self.learner

    def _progress(self) -> Observer:
        return make_progress(quiet=not self.verbose)

    # --- Acting ---

    @property
    def policy(self) -> Policy:
        """The policy that acts: of the averaged actors, if the settings ask for averaging."""
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
        rng = None if deterministic else self._rng()
        dtype = self._source.action_dtype
        return self.policy.predict(observation, state, episode_start, deterministic, rng=rng, dtype=dtype)

    def _rng(self) -> np.random.Generator:
        """Return the source of the exploration; it outlives the policies, which change with learning."""
        if not hasattr(self, "_generator"):
            self._generator = np.random.default_rng([self.config.seed, 1])
        return self._generator

    # --- Saving ---

    def save(self, path: str | Path, *, full: bool = False) -> None:
        """Write the policy and the settings to a file, which `higl eval` reads too.

        With `full`, write the complete state: an agent that is loaded from it can continue learning.
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
        """Load an agent from a file that `save` wrote, from a policy file, or from a run folder.

        An agent from a run folder, or from a file saved with `full`, can continue learning; one from a policy can only
        act. Loading runs no code that the file names: the module of a task `module:id` is imported only if you give
        that name as `env`.

        Args:
            path: The file or folder.
            env: The environment; not given: made from the name of the task, if that needs no import.
            test_env: Environment of the evaluations, as for a new agent; not given: the run's, if it was named.

        Raises:
            PolicyFileError: the file is damaged, or was not written by higl.
            CheckpointError: the run's checkpoints are damaged.
            TaskError: the environment's spaces differ from those that the agent was trained for, or a module would have
                to be imported.
        """
        path = Path(path)
        loaded, stored = None if is_run(path) else load_agent(path), None
        if is_run(path):
            policy, config = None, read_config(path)
            stored = read_facts(path).get("test_env")
        elif loaded is not None:
            policy, config = None, loaded[0]
        else:
            policy, config = load_policy(path)
        import_named(env, test_env)
        test_env = stored if test_env is None else test_env
        for option, name in (("env", config.task if env is None else env), ("test_env", test_env)):
            if isinstance(name, str) and not is_imported(name):
                allowing = f"{cls.__name__}.load(path, {option}={name!r})"
                raise TaskError(f"{path}: {would_import(name)}; if you trust it, {allowing}")
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
        use_compilation_cache()
        agent = cls.__new__(cls)
        agent.verbose, agent._given, agent.derived, agent._derives = 1, {}, [], False
        source = config.task if env is None else env
        agent._source = Source(source, test_env, config.reward, hide_goal=config.explores_freely)
        try:
            agent._begin(config, trained_for)
        except TaskError as error:
            if env is not None:
                raise
            raise TaskError(f"{error}; give the environment: {cls.__name__}.load(path, env)") from None
        return agent

    def _continue_run(self, folder: Path) -> None:
        """Restore the newest checkpoint of a run, and continue in its folder."""
        restore_newest(self._learner(), Checkpoints(folder / CHECKPOINTS), Silent().warn)
        self._folder = folder


class HIGL(Agent):
    """Hierarchical reinforcement learning guided by landmarks (HIGL)."""

    algo = "higl"


class HRAC(Agent):
    """HIGL without landmarks: an adjacency network keeps subgoals within reach of the current state."""

    algo = "hrac"


class HIRO(Agent):
    """HIGL with neither landmarks nor an adjacency network."""

    algo = "hiro"


def _whole_steps(steps: float | None, total_timesteps: float | None) -> int:
    """Return the number of steps that was given under either name; 1e5 is a whole number, too."""
    if (steps is None) == (total_timesteps is None):
        raise SettingsError("learn: give the number of steps once: learn(100_000), or learn(total_timesteps=100_000)")
    given: Any = total_timesteps if steps is None else steps
    if not isinstance(given, (int, float, np.number)) or given < 1 or not float(given).is_integer():
        raise SettingsError(f"learn: steps = {given!r}: expected a whole number, 1 or more")
    return int(given)


def evaluate(agent: Agent, env: EnvironmentLike | None = None, episodes: int = 100, *, seed: int = 0) -> Evaluation:
    """Run episodes without exploration and return their summary.

    Args:
        agent: The agent.
        env: Environment; not given: the agent's own test environment.
        episodes: Number of episodes.
        seed: The same seed gives the same episodes.
    """
    if episodes < 1:
        raise ValueError(f"evaluate: episodes = {episodes}: expected 1 or more")
    if not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"evaluate: seed = {seed}: expected a number {SEED_RANGE}")
    import_named(env)
    source = agent._source if env is None else Source(env, None, agent.config.reward)
    test_env = agent._test_env(source)
    return run_episodes(test_env, agent.policy, measuring_seeds(seed, range(episodes)))
