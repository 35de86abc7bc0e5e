"""The two families of presets, one entry per task.

`paper` holds the paper's tables to the letter, with the notes' decisions where it is silent. `best` is the default:
what our own runs show to learn fastest; each value that differs from `paper` says why.
"""

from __future__ import annotations

from dataclasses import replace

from higl.config import (
    AdjacencyConfig,
    Algorithm,
    Config,
    HighConfig,
    LandmarksConfig,
    LowConfig,
    NoveltyConfig,
    Preset,
)

ANT_TORQUE = 30.0
REACHER_TORQUE = 20.0
PUSHER_TORQUE = 2.0
POINT_RANGE = 1.0

# epsilon_k of the paper's table: the scale of embeddings, and what the landmark loss leaves free (eq. 8).
EPSILON = 1.0

# Exploration of the low level in `best`, as a share of the action range: a sigma of 1 on torques of 30 hardly moves
# the ant (progress per segment after 50,000 steps 0.24, against 0.31 with 4 of 30).
BEST_EXPLORATION_SHARE = 0.1


def _maze(*, exploration: float, degree: int, shift: float, landmarks: int) -> Config:
    """Return the paper's settings of a maze: relative subgoals, goal coordinates hidden from the low level."""
    return Config(
        preset="paper",
        low=LowConfig(exploration=exploration, hidden_entries=(0, 1)),
        high=HighConfig(period=10, subgoals="relative", subgoal_range=(10.0,), exploration=1.0, random_steps=0),
        adjacency=AdjacencyConfig(every=50_000, degree=degree, epsilon=EPSILON, delta=0.2),
        novelty=NoveltyConfig(similarity=0.2),
        landmarks=LandmarksConfig(
            coverage=landmarks,
            novelty=landmarks,
            cutoff=38.0,
            goal_within=10.0,
            shift=shift,
            neighbours=0,
            margin=EPSILON,
        ),
    )


def _arm(*, subgoal_range: float, cell: float) -> Config:
    """Return the paper's settings of an arm: absolute subgoals, nothing hidden."""
    return Config(
        preset="paper",
        low=LowConfig(exploration=0.1, target_noise=0.1, hidden_entries=()),
        high=HighConfig(
            period=5,
            subgoals="absolute",
            subgoal_range=(subgoal_range,),
            exploration=0.2,
            random_steps=0,
        ),
        adjacency=AdjacencyConfig(every=50_000, degree=5, epsilon=EPSILON, delta=0.02, cell=cell),
        novelty=NoveltyConfig(similarity=0.02),
        landmarks=LandmarksConfig(
            coverage=20, novelty=20, cutoff=15.0, goal_within=5.0, shift=1.0, neighbours=0, margin=EPSILON
        ),
    )


_ANT_U = _maze(exploration=1.0, degree=5, shift=2.0, landmarks=20)

PAPER: dict[str, Config] = {
    "point-maze": _maze(exploration=1.0, degree=7, shift=0.5, landmarks=20),
    "ant-maze-u": _ANT_U,
    "ant-maze-u-stochastic": _ANT_U,
    # The appendix's larger maze: 40 + 40 landmarks.
    "ant-maze-u-large": _maze(exploration=1.0, degree=5, shift=2.0, landmarks=40),
    # The text says 40 + 40, the table 60 + 60: the table.
    "ant-maze-w": _maze(exploration=1.0, degree=5, shift=2.0, landmarks=60),
    # The arms move by less than one unit in an episode, so a cell of 1 would hold all they reach.
    "reacher": _arm(subgoal_range=1.0, cell=0.1),
    "pusher": _arm(subgoal_range=2.0, cell=0.1),
}

_ACTION_RANGE = {
    "point-maze": POINT_RANGE,
    "ant-maze-u": ANT_TORQUE,
    "ant-maze-u-stochastic": ANT_TORQUE,
    "ant-maze-u-large": ANT_TORQUE,
    "ant-maze-w": ANT_TORQUE,
    "reacher": REACHER_TORQUE,
    "pusher": PUSHER_TORQUE,
}


# An untrained high level asks for much the same far subgoal all the time, and a low level that sees no others learns
# to walk slowly: moved 0.35 along a subgoal after 100,000 steps, against 0.57 alone on random subgoals.
ANT_RANDOM_STEPS = 50_000


def _best(task: str) -> Config:
    """Return our settings for a task, from the paper's."""
    paper = PAPER[task]
    return replace(
        paper,
        preset="best",
        low=replace(paper.low, exploration=BEST_EXPLORATION_SHARE * _ACTION_RANGE[task]),
        high=replace(paper.high, random_steps=ANT_RANDOM_STEPS if task.startswith("ant-") else 0),
        # Until its first training the network holds no subgoal near, and after one it is out of date while the
        # frontier moves; a training takes two seconds.
        adjacency=replace(paper.adjacency, every=10_000),
        landmarks=replace(
            paper.landmarks,
            # The margin lies between adjacent and other pairs (epsilon + half of delta), as the network is trained.
            margin=paper.adjacency.epsilon + paper.adjacency.delta / 2,
            # The choice hardly changes and the planner costs a fifth: benchmarks/near_pairs.py.
            neighbours=6,
        ),
    )


BEST: dict[str, Config] = {task: _best(task) for task in PAPER}


def short_name(task: str) -> str:
    """Return the short name of a task of ours that is named by its Gymnasium id; any other name as it is."""
    if not task.startswith("higl/"):
        return task
    from higl.envs.tasks import TASKS  # only now: it imports Gymnasium

    return next((own.name for own in TASKS if own.id == task), task)


def has_preset(task: str) -> bool:
    """Return whether a task's settings come from a preset; otherwise they are derived from its environment."""
    return task in PAPER or task.startswith("higl/")


def preset(task: str, algo: Algorithm = "higl", family: Preset = "best") -> Config:
    """Return the settings of a family for a task and an algorithm.

    HRAC holds subgoals within the k-step region of the current state with k = m, where HIGL uses its own k around
    the pseudo-landmark. A task that no table knows starts from Ant Maze (U-shape); `derive.py` goes on from there.
    """
    task = short_name(task)
    table = BEST if family == "best" else PAPER
    config = replace(table.get(task, table["ant-maze-u"]), task=task, algo=algo)
    if algo != "higl":
        config = replace(config, adjacency=replace(config.adjacency, degree=config.high.period))
    return config
