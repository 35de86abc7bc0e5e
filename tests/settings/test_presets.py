"""The paper's three tables of hyperparameters, value by value, for every task."""

import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from higl import envs
from higl.envs.make import make_env
from higl.errors import SettingsError
from higl.settings import presets
from higl.settings.config import Config
from higl.settings.flat import flat, flat_config
from higl.settings.layers import apply
from higl.settings.presets import PRESET_TASKS, has_preset, has_rewards, preset, short_name

TASKS = [
    "point-maze",
    "ant-maze-u",
    "ant-maze-u-stochastic",
    "ant-maze-u-large",
    "ant-maze-w",
    "reacher",
    "pusher",
]

# Table 1, "Hyperparameters for hierarchical policy across all environments": high level, low level.
TABLE_1 = {
    "actor_learning_rate": (0.0001, 0.0001),
    "critic_learning_rate": (0.001, 0.001),
    "buffer_size": (200_000, 200_000),
    "batch_size": (128, 128),
    "soft_update": (0.005, 0.005),
    "policy_period": (1, 1),
    "discount": (0.99, 0.95),
    "reward_scale": (0.1, 1.0),
}
LANDMARK_LOSS_COEFFICIENT = 20

# Table 2, "Hyperparameters for adjacency network and RND network across all environments".
TABLE_2_ADJACENCY = {"learning_rate": 0.0002, "batch_size": 64, "epsilon": 1.0, "every": 50_000, "epochs": 25}
TABLE_2_RND = {"learning_rate": 0.001, "batch_size": 128}

# Table 3, "Hyperparameters that differ across the environments".
TABLE_3_ROWS = (
    "period",
    "high_exploration",
    "landmarks",
    "similarity",
    "cutoff",
    "shift",
    "degree",
    "low_exploration",
    "delta",
)
TABLE_3 = {
    "Point Maze": (10, 1.0, 20, 0.2, 38.0, 0.5, 7, 1.0, 0.2),
    "Ant Maze (U-shape)": (10, 1.0, 20, 0.2, 38.0, 2.0, 5, 1.0, 0.2),
    "Ant Maze (W-shape)": (10, 1.0, 60, 0.2, 38.0, 2.0, 5, 1.0, 0.2),
    "Reacher & Pusher": (5, 0.2, 20, 0.02, 15.0, 1.0, 5, 0.1, 0.02),
}
COLUMN = {
    "point-maze": "Point Maze",
    "ant-maze-u": "Ant Maze (U-shape)",
    "ant-maze-u-stochastic": "Ant Maze (U-shape)",
    "ant-maze-u-large": "Ant Maze (U-shape)",
    "ant-maze-w": "Ant Maze (W-shape)",
    "reacher": "Reacher & Pusher",
    "pusher": "Reacher & Pusher",
}
# The appendix on the larger maze: "We increase the number of landmarks to 40 and 40".
LANDMARKS_LARGE = 40

# Largest action along each axis: the paper's sigmas have the units of the action, our settings are shares of this.
LARGEST_ACTION = {task: 30.0 for task in TASKS if task.startswith("ant")} | {
    "point-maze": 1.0,
    "reacher": 20.0,
    "pusher": 2.0,
}

# Tasks with 20 coverage landmarks in the paper, of which `best` has more.
FEW_LANDMARKS = ("ant-maze-u", "ant-maze-u-stochastic", "reacher", "pusher")

every_task = pytest.mark.parametrize("task", TASKS)


def paper(task: str) -> Config:
    return preset(task, family="paper")


def test_every_task_has_both_presets():
    assert set(PRESET_TASKS) == set(TASKS)


@every_task
@pytest.mark.parametrize("name", TABLE_1)
def test_table_1(task, name):
    assert (getattr(paper(task).high, name), getattr(paper(task).low, name)) == TABLE_1[name]


@every_task
def test_table_1_landmark_loss(task):
    assert paper(task).landmarks.coefficient == LANDMARK_LOSS_COEFFICIENT
    # The loss leaves epsilon_k free (eq. 8).
    assert paper(task).landmarks.margin == TABLE_2_ADJACENCY["epsilon"]


@every_task
def test_table_2(task):
    config = paper(task)
    assert {name: getattr(config.adjacency, name) for name in TABLE_2_ADJACENCY} == TABLE_2_ADJACENCY
    assert {name: getattr(config.novelty, name) for name in TABLE_2_RND} == TABLE_2_RND


@every_task
def test_table_3(task):
    config = paper(task)
    expected = dict(zip(TABLE_3_ROWS, TABLE_3[COLUMN[task]], strict=True))
    if task == "ant-maze-u-large":
        expected["landmarks"] = LANDMARKS_LARGE
    assert config.landmarks.coverage == config.landmarks.novelty
    assert expected == {
        "period": config.high.period,
        "high_exploration": config.high.exploration,
        "landmarks": config.landmarks.coverage,
        "similarity": config.novelty.similarity,
        "cutoff": config.landmarks.cutoff,
        "shift": config.landmarks.shift,
        "degree": config.adjacency.degree,
        "low_exploration": config.low.exploration * LARGEST_ACTION[task],
        "delta": config.adjacency.delta,
    }


@every_task
def test_network_structure(task):
    """The appendix: hidden layers and embeddings."""
    config = paper(task)
    assert config.low.hidden == config.high.hidden == (300, 300)
    # "4 fully connected layers": three hidden ones of 128.
    assert (config.adjacency.hidden, config.adjacency.embedding) == ((128, 128, 128), 32)
    assert (config.novelty.hidden, config.novelty.embedding) == ((300, 300), 128)
    assert not config.low.layer_norm
    assert not config.high.layer_norm


@every_task
def test_text_of_the_paper(task):
    """Section 5.1: start of planning, evaluation, and relative or absolute subgoals."""
    config = paper(task)
    assert config.landmarks.start == 60_000
    assert (config.evaluation.every, config.evaluation.episodes) == (5_000, 5)
    arm = task in ("reacher", "pusher")
    assert config.high.subgoals == ("absolute" if arm else "relative")
    assert config.landmarks.pseudo == "fixed"
    assert config.novelty.discard == "goal"


@every_task
def test_where_the_paper_is_silent(task):
    """Our choices: subgoal ranges, target noise, weight decay, number of edges, no relabelling."""
    config = paper(task)
    arm = task in ("reacher", "pusher")
    assert config.high.subgoal_range == ({"reacher": 1.0, "pusher": 2.0}.get(task, 10.0),)
    assert (config.high.target_noise, config.high.target_noise_clip) == (0.2, 0.5)
    assert config.low.target_noise * LARGEST_ACTION[task] == (0.1 if arm else 0.2)
    assert config.low.target_noise_clip * LARGEST_ACTION[task] == 0.5
    assert config.low.critic_weight_decay == config.high.critic_weight_decay == 1e-4
    assert config.low.hidden_entries == (() if arm else (0, 1))
    assert config.landmarks.goal_within == (5.0 if arm else 10.0)
    assert config.landmarks.pool == 1_000
    assert config.landmarks.neighbours == 4
    assert config.high.random_steps == 0
    assert config.low.exchange == 0
    assert config.greedy == 0
    assert config.adjacency.cell == (0.1 if arm else 1.0)
    assert config.time_limit == "terminal"
    assert not config.high.relabel


@every_task
@pytest.mark.parametrize("family", ["paper", "best"])
def test_the_baselines_have_k_equal_to_m_and_all_else_as_higl(task, family):
    higl = preset(task, "higl", family)
    assert higl.adjacency.degree < higl.high.period or task in ("reacher", "pusher")
    for algo in ("hrac", "hiro"):
        config = preset(task, algo, family)
        assert config.adjacency.degree == config.high.period
        assert config.algo == algo
        different = {name for name, value in asdict(config).items() if value != asdict(higl)[name]}
        assert different <= {"algo", "adjacency"}
        changed = asdict(config)["adjacency"]
        assert {name for name, value in asdict(higl)["adjacency"].items() if value != changed[name]} <= {"degree"}


@every_task
def test_largest_actions_are_those_of_the_environments(task):
    """The shares of `paper.toml` were computed with these numbers."""
    assert set(abs(make_env(task).action_space.high)) == {LARGEST_ACTION[task]}


@every_task
@pytest.mark.parametrize("family", ["paper", "best"])
def test_a_preset_names_its_task_and_family(task, family):
    assert (preset(task, family=family).task, preset(task, family=family).preset) == (task, family)


# Settings of `best`, from the defaults and from the layers of both families.
BEST_ROWS = (
    "novelty.batch_size",
    "low.hidden_entries",
    "high.subgoal_range",
    "landmarks.pool",
    "high.random_steps",
    "landmarks.coverage",
    "landmarks.shift",
)
BEST = {
    "point-maze": (128, (0, 1), (5.0,), 10_000, 0, 60, 2.0),
    "ant-maze-u": (128, (0, 1), (10.0,), 10_000, 50_000, 40, 1.2),
    "ant-maze-u-stochastic": (128, (0, 1), (10.0,), 10_000, 50_000, 40, 1.2),
    "ant-maze-u-large": (128, (0, 1), (10.0,), 10_000, 50_000, 40, 2.0),
    "ant-maze-w": (128, (0, 1), (10.0,), 10_000, 50_000, 60, 2.0),
    "reacher": (128, (), (1.0,), 10_000, 10_000, 40, 0.5),
    "pusher": (128, (), (1.0, 1.5, 0.5, 1.0, 0.5, 0.3), 10_000, 10_000, 40, 0.5),
}


@every_task
def test_later_layers_override_earlier_ones(task):
    settings = flat_config(preset(task))
    assert tuple(settings[name] for name in BEST_ROWS) == BEST[task]


def layers_of(family: str) -> dict:
    return tomllib.loads((Path(presets.__file__).parent / f"{family}.toml").read_text())


def tuple_of(value):
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("family", ["paper", "best"])
def test_every_layer_holds_valid_settings_of_some_task(family):
    for name, layer in layers_of(family).items():
        assert name in (*TASKS, "all", "few-landmarks", "ant", "arm", "other")
        apply(Config(), flat(layer))


@every_task
def test_best_repeats_no_number_of_the_paper(task):
    """A setting that `best` gives a task in its own layer differs from what the task would have without it."""
    without = flat_config(preset(task, family="paper")) | flat_all()
    group = {"a": "ant", "r": "arm", "p": "arm" if task == "pusher" else ""}[task[0]]
    layers = layers_of("best")
    for name in ("few-landmarks" if task in FEW_LANDMARKS else "", group, task):
        own = {setting: tuple_of(value) for setting, value in flat(layers.get(name, {})).items()}
        assert not [setting for setting, value in own.items() if without[setting] == value]
        without |= own
    papers = flat_config(preset(task, family="paper"))
    repeated = [name for name, value in flat(layers.get(task, {})).items() if papers[name] == tuple_of(value)]
    assert set(repeated) <= {"evaluation.average"}, "only to switch off what `all` has"


def flat_all() -> dict:
    return {name: tuple_of(value) for name, value in flat(layers_of("best")["all"]).items()}


@pytest.mark.parametrize(("family", "shown"), [("bst", '"bst"'), (["best"], r'\["best"\]'), (None, "null")])
def test_an_unknown_preset_is_rejected(family, shown):
    with pytest.raises(SettingsError, match=f"preset = {shown}: expected one of best, paper"):
        preset("pusher", family=family)


def test_the_defaults_are_the_papers_numbers_for_ant_maze_u():
    assert paper("ant-maze-u") == Config()


@pytest.mark.parametrize("task", envs.TASKS, ids=lambda task: task.name)
def test_short_names(task):
    assert short_name(task.id) == short_name(task.name) == task.name


def test_presets_of_a_gymnasium_id_are_those_of_its_short_name():
    assert preset("higl/AntMazeW-v0", "hrac") == preset("ant-maze-w", "hrac", "best")


def test_a_task_without_a_preset_starts_from_the_papers_numbers():
    assert preset("Some-v0", family="paper") == replace(Config(), task="Some-v0")
    assert preset("Some-v0").low.exchange == preset("reacher").low.exchange


def test_what_has_presets_and_a_choice_of_rewards():
    assert has_preset("pusher")
    assert has_preset("higl/Pusher-v0")
    assert not has_preset("Some-v0")
    assert (has_rewards("pusher"), has_rewards("higl/Own-v0"), has_rewards("Some-v0")) == (True, True, False)


@pytest.mark.parametrize(
    ("algo", "landmarks", "adjacency"), [("higl", True, True), ("hrac", False, True), ("hiro", False, False)]
)
def test_what_an_algorithm_uses(algo, landmarks, adjacency):
    config = preset("ant-maze-u", algo)
    assert (config.uses_landmarks, config.uses_adjacency) == (landmarks, adjacency)
