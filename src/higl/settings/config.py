"""The settings of a run: frozen data that imports nothing else of the package.

Each setting stands here once, with the paper's number for Ant Maze (U-shape) as its default. Settings that the paper
does not have are off. `presets/paper.toml` holds what differs for other tasks, `presets/best.toml` our recipe for
every environment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Algorithm = Literal["higl", "hrac", "hiro"]
Preset = Literal["best", "paper"]
Reward = Literal["sparse", "dense"]
Precision = Literal["auto", "fp32", "bf16"]
GoalSource = Literal["given", "none"]
Explore = Literal["frontier", "uniform", "straight", "random"]

GOAL_REGION = 10
"""Width of the goal region in units, by which the unit is derived (the paper's mazes: 12)."""


@dataclass(frozen=True, kw_only=True)
class LevelConfig:
    """Settings of TD3 that differ between the levels (the paper's table of the hierarchical policy)."""

    actor_learning_rate: float = 1e-4
    """Learning rate of the actor (Adam)."""
    discount: float = 0.99
    """Discount factor, gamma."""
    exploration: float = 1.0
    """Standard deviation of the exploration noise, in units of the goal space."""


@dataclass(frozen=True, kw_only=True)
class LowConfig(LevelConfig):
    """The low level: pursues a subgoal."""

    discount: float = 0.95
    """Discount factor, gamma."""
    action_share: float = 1.0
    """Share of the range of each action that is used, around its middle: less than 1 for motors that are so strong that
    random actions turn the body over."""
    # The paper's sigma of 1 on torques of up to 30, and our choice of 0.2, at most 0.5, where it is silent.
    exploration: float = 0.03333333333333333
    """Standard deviation of the exploration noise, as a share of half the used range of each action."""
    target_noise: float = 0.006666666666666667
    """Standard deviation of the noise on the target policy's action, as a share of half the used range
    of each action."""
    target_noise_clip: float = 0.016666666666666666
    """Bound of that noise, as a share of half the used range of each action."""
    updates: int = 1
    """Updates per step of the environment; twice as many in the first 20,000 steps, but not with the preset `paper`."""
    critic_updates: int = 1
    """Updates of the critics in each update; the actor and the targets have one."""
    exchange: float = 0.0
    """Share of each batch whose subgoals are replaced by another transition's or, if absolute, by an achieved point."""
    normalise: bool = False
    """Scale the observation by the mean and standard deviation of the states seen so far, for networks of both levels.
    The high level then sees how far off the desired goal is, in tens of units of the goal space."""
    hidden_entries: tuple[int, ...] = (0, 1)
    """Entries of the observation hidden from the low level (the goal coordinates, if subgoals are relative)."""
    angles: tuple[int, ...] = ()
    """Entries of the observation that are angles, in radians, without limits: the low level sees sine and cosine. So
    does the high level with `low.normalise`."""


@dataclass(frozen=True, kw_only=True)
class HighConfig(LevelConfig):
    """The high level: proposes subgoals."""

    period: int = 10
    """Steps between two subgoals, m."""
    subgoals: Literal["relative", "absolute"] = "relative"
    """Whether a subgoal is an offset from the current state or a point of the goal space."""
    subgoal_range: tuple[float, ...] = (10.0,)
    """Largest size of a subgoal, one number for each dimension of the goal space or one for all."""
    reward_scale: float = 0.1
    """Factor on the rewards of this level."""
    random_steps: int = 0
    """Environment steps with random subgoals at the start of a run, so that the low level learns to move first."""
    random_sigma: float = 2.0
    """Standard deviation of the random subgoals around the achieved goal, in units of the goal space."""
    relabel: bool = False
    """Replace stored subgoals by those that make the stored actions most likely under the current low-level policy
    (HIRO)."""


@dataclass(frozen=True, kw_only=True)
class AdjacencyConfig:
    """The adjacency network (eq. 5 and 6)."""

    degree: int = 5
    """Two cells count as adjacent if fewer steps than this lead from one to the other, k."""
    cell: float = 1.0
    """Side of a cell of the goal space."""
    epochs: int = 25
    """Passes over the pairs in each training."""
    every: int = 50_000
    """Environment steps between two trainings."""
    delta: float = 0.2
    """Margin between the embeddings of adjacent and other cells."""
    margin: float = 1.0
    """Distance from the pseudo-landmark (HRAC: from the current state) within which a subgoal is not penalised,
    epsilon_k in eq. 8."""
    all_pairs_up_to: int = 1_000
    """Cells up to which a training sees all pairs; with more, all adjacent pairs and a sample of the others."""


@dataclass(frozen=True, kw_only=True)
class NoveltyConfig:
    """Random network distillation and the queue of novel states."""

    similarity: float = 0.2
    """Distance within which a new state replaces a stored one, lambda."""
    discard: Literal["goal", "adjacency"] = "goal"
    """Measure of that distance: in the goal space, or between adjacency embeddings (the paper's appendix)."""


@dataclass(frozen=True, kw_only=True)
class LandmarksConfig:
    """Landmarks, the graph over them, and the landmark loss (eq. 7 to 9)."""

    graph: Literal["values", "walked"] = "values"
    """Edges between landmarks: the low level's values (the paper), or what has been walked. A walked map proposes the
    subgoals itself: no network of the high level is trained."""
    coverage: int = 20
    """Number of coverage landmarks, M_cov. Of a walked map: the largest number of landmarks."""
    explore: Explore = "frontier"
    """With `goal` "none": where episodes lead, to a landmark by few visits, walked way and failures (frontier), to any
    landmark (uniform), as frontier but without the map (straight), or nowhere, by random subgoals (random)."""
    novelty: int = 20
    """Number of novelty landmarks, M_nov (also the size of the queue)."""
    pool: int = 1_000
    """States from which farthest point sampling chooses."""
    cutoff: float = 38.0
    """Longest edge of the graph without a penalty, gamma_dist, in units of the low level's value."""
    goal_within: float = 10.0
    """Distance, in units of the low level's value, within which the goal is selected instead of a landmark."""
    pseudo: Literal["fixed", "capped", "automatic", "raw"] = "fixed"
    """Where the pseudo-landmark lies: at `shift` (fixed), at `shift` but not beyond the landmark (capped), at the mean
    distance of the landmarks (automatic), or at the landmark (raw)."""
    shift: float = 2.0
    """Distance of the pseudo-landmark from the current state, delta_pseudo."""
    start: int = 60_000
    """Environment step at which planning starts (section 5.1); until then the pseudo-landmark is the current state."""
    coefficient: float = 20.0
    """Weight of the landmark loss, eta."""


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """Evaluation during training."""

    every: int = 5_000
    """Environment steps between two evaluations."""
    episodes: int = 5
    """Episodes of each evaluation, without exploration."""
    average: int = 0
    """Steps over which the evaluated and saved actors are averaged (at most a tenth of the run so far); 0: none."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run; they determine its result."""

    task: str = "ant-maze-u"
    """Short name of a task, or any Gymnasium id."""
    algo: Algorithm = "higl"
    """Algorithm: higl, hrac (no landmarks) or hiro (no adjacency either)."""
    preset: Preset = "paper"
    """Preset to start from."""
    goal: GoalSource = "given"
    """Final goals of training: those of the task (given), or none: neither desired goals nor rewards are used. A walked
    map explores; hrac and hiro get random goals. Tests always have the task's goals."""
    reward: Reward = "sparse"
    """Reward of the task."""
    seed: int = 0
    """Seed of all random numbers of the run."""
    steps: int = 1_000_000
    """Environment steps of the run."""
    time_limit: Literal["terminal", "bootstrap"] = "terminal"
    """At a time limit: treat the state as terminal (if time is observed) or bootstrap (if not)."""
    observe_achieved: bool = False
    """Prepend the achieved goal to the observation, for an environment whose observation leaves it out."""
    num_envs: int = 1
    """Environments that collect episodes at the same time, with the same policy."""
    goal_unit: tuple[float, ...] = (1.0,)
    """Length that counts as 1, one number for each dimension of the goal space or one for all. All distances in the
    goal space are in this unit, except `high.subgoal_range`."""
    precision: Precision = "auto"
    """Precision of the matrix products of learning: fp32, bf16 (factors rounded, sums in fp32), or auto: bf16 where the
    processor multiplies it faster."""
    hidden: tuple[int, ...] = (300, 300)
    """Sizes of the hidden layers of the actors and critics of both levels."""
    batch_size: int = 128
    """Transitions in a batch, of both levels."""
    buffer_size: int = 200_000
    """Capacity of the replay buffer of each level, in transitions."""
    low: LowConfig = field(default_factory=LowConfig)
    high: HighConfig = field(default_factory=HighConfig)
    adjacency: AdjacencyConfig = field(default_factory=AdjacencyConfig)
    novelty: NoveltyConfig = field(default_factory=NoveltyConfig)
    landmarks: LandmarksConfig = field(default_factory=LandmarksConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @property
    def bounds_targets(self) -> bool:
        """Whether the TD targets of both levels stay within what rewards allow: in all runs but those of the paper."""
        return self.preset != "paper"

    @property
    def learns_eagerly(self) -> bool:
        """Whether a run has more updates at its start: all runs but those of the paper."""
        return self.preset != "paper"

    @property
    def uses_landmarks(self) -> bool:
        """Whether the high level is guided by landmarks (HIGL)."""
        return self.algo == "higl" and self.landmarks.coverage + self.landmarks.novelty > 0

    @property
    def uses_novelty(self) -> bool:
        """Whether some landmarks are novel states."""
        return self.uses_landmarks and self.landmarks.novelty > 0 and not self.walks_map

    @property
    def walks_map(self) -> bool:
        """Whether subgoals come from a map of what has been walked, and not from a network of the high level."""
        return self.uses_landmarks and self.landmarks.graph == "walked"

    @property
    def learns_from_rewards(self) -> bool:
        """Whether the task's rewards matter in training. A map learns from where the agent went and what it reached."""
        return not self.walks_map

    @property
    def normalises_high(self) -> bool:
        """Whether the high level's networks see normalised observations; a walked map has no such networks."""
        return self.low.normalise and not self.walks_map

    @property
    def explores_freely(self) -> bool:
        """Whether training has no final goal."""
        return self.goal == "none"

    @property
    def draws_goals(self) -> bool:
        """Whether each training episode draws a random goal: without a final goal, and without a map that explores."""
        return self.explores_freely and not self.walks_map

    @property
    def learns_in_hindsight(self) -> bool:
        """Whether the networks of the high level also learn with goals that an episode reached later.

        They do in all runs but those of the paper, and in those if goals are random.
        """
        return not self.walks_map and (self.explores_freely or self.preset != "paper")

    @property
    def uses_adjacency(self) -> bool:
        """Whether a loss keeps subgoals near the pseudo-landmark (HIGL) or near the current state (HRAC)."""
        return self.algo != "hiro" and not self.walks_map
