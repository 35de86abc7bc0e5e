"""The settings of a run: frozen data that imports nothing of the program.

Every setting of every part has one place here, with its default for Ant Maze (U-shape). What differs between
tasks, and between the two families of presets, is in `presets.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Algorithm = Literal["higl", "hrac", "hiro"]
Preset = Literal["best", "paper"]
Reward = Literal["sparse", "dense"]


@dataclass(frozen=True, kw_only=True)
class LevelConfig:
    """Settings of TD3 that both levels have (the paper's table of hyperparameters for the hierarchical policy)."""

    hidden: tuple[int, ...] = (300, 300)
    """Sizes of the hidden layers of actor and critics."""
    actor_learning_rate: float = 1e-4
    """Learning rate of the actor (Adam)."""
    critic_learning_rate: float = 1e-3
    """Learning rate of the twin critics (Adam)."""
    critic_weight_decay: float = 1e-4
    """L2 weight decay of the critics."""
    discount: float = 0.99
    """Discount factor, gamma."""
    soft_update: float = 0.005
    """Share of the new weights that the target networks take over at each update."""
    policy_period: int = 1
    """Critic updates for each update of the actor and of the target networks."""
    batch_size: int = 128
    """Transitions in a batch."""
    buffer_size: int = 200_000
    """Transitions that the replay buffer holds."""
    reward_scale: float = 1.0
    """Factor on the rewards of this level."""
    exploration: float = 1.0
    """Standard deviation of the exploration noise, in the units of the action."""
    target_noise: float = 0.2
    """Standard deviation of the noise on the target policy's action, in the units of the action."""
    target_noise_clip: float = 0.5
    """Largest size of that noise, in the units of the action."""
    layer_norm: bool = False
    """Normalise the hidden layers of the critics."""


@dataclass(frozen=True, kw_only=True)
class LowConfig(LevelConfig):
    """The low level: pursues a subgoal."""

    discount: float = 0.98
    """Discount factor, gamma."""
    buffer_size: int = 1_000_000
    """Transitions that the replay buffer holds."""
    exploration: float = 3.0
    """Standard deviation of the exploration noise, in the unit that `noise_unit` says."""
    target_noise: float = 6.0
    """Standard deviation of the noise on the target policy's action, in the unit that `noise_unit` says."""
    target_noise_clip: float = 15.0
    """Largest size of that noise, in the unit that `noise_unit` says."""
    noise_unit: Literal["action", "range"] = "action"
    """Unit of the three settings above: that of the action (the paper's tables), or half the range of each action."""
    exchange: float = 0.5
    """Share of a batch learned from with another subgoal: another transition's, or (absolute) a point it achieved."""
    hidden_entries: tuple[int, ...] = (0, 1)
    """Entries of the observation that the low level must not see (the goal coordinates, if subgoals are relative)."""


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
    random_steps: int = 50_000
    """Environment steps at the start during which subgoals are drawn at random: the low level learns to move first."""
    random_sigma: float = 2.0
    """Standard deviation of those subgoals around where the body is, in the units of the goal space."""
    relabel: bool = False
    """Replace stored subgoals by those under which the present low level is likeliest to act as stored (HIRO)."""
    relabel_candidates: int = 10
    """Random candidates for relabelling, beside the stored subgoal and the displacement achieved."""


@dataclass(frozen=True, kw_only=True)
class AdjacencyConfig:
    """The adjacency network (eq. 5 and 6)."""

    degree: int = 5
    """Steps below which two cells count as adjacent, k."""
    cell: float = 1.0
    """Side of a cell of the goal space."""
    hidden: tuple[int, ...] = (128, 128, 128)
    """Sizes of the hidden layers (the paper: four layers in all)."""
    embedding: int = 32
    """Dimension of the embedding."""
    learning_rate: float = 2e-4
    """Learning rate (Adam)."""
    batch_size: int = 64
    """Pairs of cells in a batch."""
    epochs: int = 25
    """Passes over the pairs in each training."""
    every: int = 10_000
    """Environment steps between two trainings."""
    epsilon: float = 1.0
    """Distance of embeddings within which two cells are adjacent, epsilon_k."""
    delta: float = 0.2
    """Margin between the embeddings of adjacent and other cells."""
    margin: float = 1.1
    """Distance around the current state that the loss leaves free without planning (HRAC: always), as it measures."""
    all_pairs_up_to: int = 1_000
    """Number of cells up to which a training sees all pairs; beyond, all adjacent pairs and a sample of the others."""


@dataclass(frozen=True, kw_only=True)
class NoveltyConfig:
    """Random network distillation and the queue of novel states."""

    hidden: tuple[int, ...] = (300, 300)
    """Sizes of the hidden layers."""
    embedding: int = 128
    """Dimension of the output."""
    learning_rate: float = 1e-3
    """Learning rate (Adam)."""
    batch_size: int = 128
    """States in a batch."""
    similarity: float = 0.2
    """Distance within which a stored state is discarded for a new one, lambda."""
    discard: Literal["goal", "adjacency"] = "goal"
    """Measure of that distance: in the goal space, or in steps by the adjacency network (the paper's appendix)."""
    refresh: bool = False
    """Score stored states anew with every episode; else a score lasts until its state is discarded."""
    space: Literal["state", "goal"] = "state"
    """What is novel: a state with all that is observed (eq. 4), or its point in the goal space."""


@dataclass(frozen=True, kw_only=True)
class LandmarksConfig:
    """Landmarks, the graph over them, and the landmark loss (eq. 7 to 9)."""

    coverage: int = 40
    """Landmarks by coverage, M_cov."""
    novelty: int = 20
    """Landmarks by novelty, M_nov (also the size of the queue)."""
    pool: int = 10_000
    """States among which farthest point sampling chooses."""
    central: bool = True
    """Move coverage landmarks to the centre of the states around them: off the walls."""
    cutoff: float = 45.0
    """Longest edge of the graph, gamma_dist, in units of the low level's value."""
    goal_within: float = 10.0
    """Distance (low level's value) within which the goal itself is selected in place of a landmark."""
    neighbours: int = 4
    """Landmarks to which the edges of each state and each goal are weighed, the most promising ones (0: all)."""
    discount_pose: bool = True
    """Shorten edges that leave a state or landmark whose pose makes everything far (stuck, on its back)."""
    pseudo: Literal["fixed", "capped", "automatic", "raw"] = "fixed"
    """Pseudo-landmark at `shift` (capped: not past the landmark), at the landmarks' average distance, or at its own."""
    shift: float = 1.2
    """Distance of the pseudo-landmark from the current state, delta_pseudo."""
    start: int = 50_000
    """Environment step at which planning starts; before, the pseudo-landmark is the current state."""
    coefficient: float = 20.0
    """Weight of the landmark loss, eta."""
    measure: Literal["adjacency", "goal"] = "adjacency"
    """Measure of the landmark loss: between the adjacency network's embeddings, or in the goal space, in cells."""
    margin: float = 0.0
    """Distance from the pseudo-landmark that the landmark loss leaves free, as it measures (the paper: epsilon_k)."""


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """Evaluation during training."""

    every: int = 5_000
    """Environment steps between two evaluations."""
    episodes: int = 5
    """Episodes in each, without exploration."""
    average: int = 20_000
    """Steps over which the tested and saved actors are averaged (at most a tenth of all so far); 0: no average."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run. With the seed they determine it."""

    task: str = "ant-maze-u"
    """Short name of a task, or any Gymnasium id."""
    algo: Algorithm = "higl"
    """Algorithm: higl, hrac (no landmarks) or hiro (no adjacency either)."""
    preset: Preset = "best"
    """Family of presets that the settings started from."""
    reward: Reward = "sparse"
    """Reward of the task."""
    seed: int = 0
    """Seed of all that is random in the run."""
    steps: int = 1_000_000
    """Environment steps of the run."""
    time_limit: Literal["terminal", "bootstrap"] = "terminal"
    """What a time limit is to the values: the end (time is observed), or nothing (it is not)."""
    observe_achieved: bool = False
    """Put the achieved goal before the observation, for an environment whose observation leaves it out."""
    num_envs: int = 1
    """Environments that episodes are collected from at once, all with the same policy."""
    greedy: float = 0.25
    """Share of the training episodes without exploration, as tests are: what only they lead into is learned from."""
    low: LowConfig = field(default_factory=LowConfig)
    high: HighConfig = field(default_factory=HighConfig)
    adjacency: AdjacencyConfig = field(default_factory=AdjacencyConfig)
    novelty: NoveltyConfig = field(default_factory=NoveltyConfig)
    landmarks: LandmarksConfig = field(default_factory=LandmarksConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    @property
    def uses_landmarks(self) -> bool:
        """Whether the high level is guided by landmarks (HIGL)."""
        return self.algo == "higl" and self.landmarks.coverage + self.landmarks.novelty > 0

    @property
    def uses_adjacency(self) -> bool:
        """Whether a loss holds the high level's subgoals near: near the landmarks (HIGL), or the state (HRAC)."""
        return self.algo != "hiro"

    @property
    def reads_adjacency_network(self) -> bool:
        """Whether anything measures with the adjacency network; where all is measured in the goal space, none is."""
        by_landmarks = self.landmarks.measure == "adjacency"
        by_novelty = self.landmarks.novelty > 0 and self.novelty.discard == "adjacency"
        return self.uses_adjacency and (not self.uses_landmarks or by_landmarks or by_novelty)
