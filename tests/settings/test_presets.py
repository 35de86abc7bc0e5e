"""Presets: every value of `paper` against the paper, the layers, and what the baselines change."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from higl import envs
from higl.algo import adjacency, high, novelty, td3
from higl.envs.make import make_env
from higl.errors import SettingsError
from higl.settings import presets
from higl.settings.config import Config
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.flat import differing, flat, flat_config
from higl.settings.layers import apply
from higl.settings.presets import PAPER_TASKS, has_rewards, is_derivable, is_derived, preset, short_name
from higl.text import value_text

TASKS = [
    "point-maze",
    "ant-maze-u",
    "ant-maze-u-stochastic",
    "ant-maze-u-large",
    "ant-maze-w",
    "reacher",
    "pusher",
]

# Largest action along each axis: the paper's sigmas have the units of the action, our settings are shares of this.
LARGEST_ACTION = {task: 30.0 for task in TASKS if task.startswith("ant")} | {
    "point-maze": 1.0,
    "reacher": 20.0,
    "pusher": 2.0,
}

every_task = pytest.mark.parametrize("task", TASKS)


def paper(task: str) -> Config:
    return preset(task, family="paper")


def test_the_tasks_of_the_paper():
    assert set(PAPER_TASKS) == set(TASKS)


# --- The paper --------------------------------------------------------------------------------------------------------

TABLE_1 = "appendix, table 1: hierarchical policy"
TABLE_2 = "appendix, table 2: adjacency network and RND"
TABLE_3 = "appendix, table 3: what differs across the environments"
NETWORKS = "appendix: network structure"
SETUP = "section 5.1: environments and implementation"
SILENT = "not in the paper: our choice"
OFF = "not in the paper: off"


def by_task(point: Any, ant_u: Any, ant_w: Any, arm: Any, **others: Any) -> dict[str, Any]:
    """Return the value of each task, from the columns of table 3; `others` by short name with underscores."""
    values = dict.fromkeys(TASKS, ant_u) | {"point-maze": point, "ant-maze-w": ant_w, "reacher": arm, "pusher": arm}
    return values | {name.replace("_", "-"): value for name, value in others.items()}


def shares(point: float, ant: float, arm: float) -> dict[str, float]:
    """Return sigmas, which the paper gives in units of the action, as shares of the largest action."""
    return {task: sigma / LARGEST_ACTION[task] for task, sigma in by_task(point, ant, ant, arm).items()}


# Every setting: where its value comes from, and the value, or one for each task.
PAPER: dict[str, tuple[str, Any]] = {
    "algo": (SETUP, "higl"),
    "preset": (SETUP, "paper"),
    "goal": (SETUP, "given"),
    "reward": (SETUP, "sparse"),
    "seed": (SILENT, 0),
    "steps": ("section 6: 1M", 1_000_000),
    "time_limit": (SILENT, "terminal"),
    "observe_achieved": (OFF, False),
    "num_envs": (SETUP, 1),
    "goal_unit": (SETUP, (1.0,)),
    "precision": (SILENT, "auto"),
    "hidden": (NETWORKS, (300, 300)),
    "batch_size": (TABLE_1, 128),
    "buffer_size": (TABLE_1, 200_000),
    "low.actor_learning_rate": (TABLE_1, 0.0001),
    "low.discount": (TABLE_1, 0.95),
    "low.exploration": (TABLE_3, shares(1.0, 1.0, 0.1)),
    "low.target_noise": (SILENT, shares(0.2, 0.2, 0.1)),
    "low.target_noise_clip": (SILENT, shares(0.5, 0.5, 0.5)),
    "low.updates": (SILENT, 1),
    "low.critic_updates": (TABLE_1, 1),
    "low.exchange": (OFF, 0.0),
    "low.normalise": (OFF, False),
    "low.angles": (OFF, ()),
    "low.action_share": (OFF, 1.0),
    "low.hidden_entries": (SILENT, by_task((0, 1), (0, 1), (0, 1), ())),
    "high.actor_learning_rate": (TABLE_1, 0.0001),
    "high.discount": (TABLE_1, 0.99),
    "high.reward_scale": (TABLE_1, 0.1),
    "high.exploration": (TABLE_3, by_task(1.0, 1.0, 1.0, 0.2)),
    "high.period": (TABLE_3, by_task(10, 10, 10, 5)),
    "high.subgoals": (SETUP, by_task("relative", "relative", "relative", "absolute")),
    "high.subgoal_range": (SILENT, by_task((10.0,), (10.0,), (10.0,), (1.0,), pusher=(2.0,))),
    "high.random_steps": (OFF, 0),
    "high.random_sigma": (OFF, 2.0),
    "high.relabel": (OFF, False),
    "adjacency.degree": (TABLE_3, by_task(7, 5, 5, 5)),
    "adjacency.cell": (SILENT, by_task(1.0, 1.0, 1.0, 0.1)),
    "adjacency.epochs": (TABLE_2, 25),
    "adjacency.every": (TABLE_2, 50_000),
    "adjacency.delta": (TABLE_3, by_task(0.2, 0.2, 0.2, 0.02)),
    "adjacency.margin": ("section 4.3, eq. 8: epsilon_k", 1.0),
    "adjacency.all_pairs_up_to": (SILENT, 1_000),
    "novelty.similarity": (TABLE_3, by_task(0.2, 0.2, 0.2, 0.02)),
    "novelty.discard": ("section 4.1: novelty-based sampling", "goal"),
    "landmarks.graph": ("section 4.2: building a graph", "values"),
    "landmarks.coverage": (f"{TABLE_3}; appendix: larger maze", by_task(20, 20, 60, 20, ant_maze_u_large=40)),
    "landmarks.explore": (OFF, "frontier"),  # read only without a goal
    "landmarks.novelty": (f"{TABLE_3}; appendix: larger maze", by_task(20, 20, 60, 20, ant_maze_u_large=40)),
    "landmarks.pool": (SILENT, 1_000),
    "landmarks.cutoff": (TABLE_3, by_task(38.0, 38.0, 38.0, 15.0)),
    "landmarks.goal_within": (SILENT, by_task(10.0, 10.0, 10.0, 5.0)),
    "landmarks.pseudo": ("section 4.3, eq. 7", "fixed"),
    "landmarks.shift": (TABLE_3, by_task(0.5, 2.0, 2.0, 1.0)),
    "landmarks.start": (SETUP, 60_000),
    "landmarks.coefficient": (TABLE_1, 20.0),
    "evaluation.every": (SETUP, 5_000),
    "evaluation.episodes": (SETUP, 5),
    "evaluation.average": (OFF, 0),
}


def test_there_are_few_settings():
    """Each must earn its place: a number that no preset, no sweep and no rule varies is a constant."""
    assert len(flat_config(Config())) <= 60


def test_the_table_of_the_paper_has_every_setting():
    assert {"task", *PAPER} == set(flat_config(Config()))


@every_task
def test_every_value_of_the_preset_is_the_papers(task):
    settings = flat_config(paper(task))
    expected = {name: value[task] if isinstance(value, dict) else value for name, (_, value) in PAPER.items()}
    wrong = {
        name: (settings[name], value) for name, value in expected.items() if settings[name] != pytest.approx(value)
    }
    assert not wrong, {name: (*values, PAPER[name][0]) for name, values in wrong.items()}


# Every number of the paper that is no setting: where it comes from, ours, and the paper's.
CONSTANTS: dict[str, tuple[str, Any, Any]] = {
    "learning rate of the critics": (TABLE_1, td3.CRITIC_LEARNING_RATE, 0.001),
    "tau": (TABLE_1, td3.SOFT_UPDATE, 0.005),
    "weight decay of the critics": (SILENT, td3.CRITIC_WEIGHT_DECAY, 1e-4),
    "target noise of the high level and its bound": (SILENT, high.SMOOTHING, (0.2, 0.5)),
    "hidden layers of the adjacency network": (f"{NETWORKS} (4 layers of 128)", adjacency.HIDDEN, (128, 128, 128)),
    "embedding of the adjacency network": (NETWORKS, adjacency.EMBEDDING, 32),
    "learning rate of the adjacency network": (TABLE_2, adjacency.LEARNING_RATE, 0.0002),
    "batch of the adjacency network": (TABLE_2, adjacency.BATCH_SIZE, 64),
    "epsilon_k": (TABLE_2, adjacency.EPSILON, 1.0),
    "hidden layers of RND": (NETWORKS, novelty.HIDDEN, (300, 300)),
    "output of RND": (NETWORKS, novelty.EMBEDDING, 128),
    "learning rate of RND": (TABLE_2, novelty.LEARNING_RATE, 0.001),
    "batch of RND": (TABLE_2, novelty.BATCH_SIZE, 128),
}


def test_every_constant_is_the_papers():
    wrong = {name: values for name, values in CONSTANTS.items() if values[1] != values[2]}
    assert not wrong


# --- The baselines ----------------------------------------------------------------------------------------------------


@every_task
@pytest.mark.parametrize("family", ["paper", "best"])
@pytest.mark.parametrize("algo", ["hrac", "hiro"])
def test_the_baselines_relabel_have_k_equal_to_m_and_all_else_as_higl(task, family, algo):
    higl, config = preset(task, "higl", family), preset(task, algo, family)
    assert (higl.high.relabel, config.high.relabel) == (False, True)
    assert config.adjacency.degree == config.high.period
    assert config.algo == algo
    same = {"adjacency.degree"} if family == "paper" and task in ("reacher", "pusher") else set()
    assert set(differing(higl, config)) == {"algo", "high.relabel", "adjacency.degree"} - same


def test_the_table_of_what_hrac_changes_is_complete():
    """docs/algorithm.md: a row for each setting in which HRAC differs from HIGL in `best`, and those derived for it."""
    text = (Path(__file__).parents[2] / "docs" / "algorithm.md").read_text(encoding="utf-8")
    section = text.partition("## What HRAC changes")[2].partition("In the preset `paper`")[0]
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| `")
    ]
    listed = {name: row[1:3] for row in cells for name in re.findall(r"`([a-z._]+)`", row[0])}
    pair = [flat_config(preset("point-maze", algo)) for algo in ("higl", "hrac")]
    expected = {name: [f"`{value_text(each[name]).lower()}`" for each in pair] for name in differing(*pair)}
    names = []
    for algo in ("higl", "hrac"):
        config, found = derive_settings(replace(preset("point-maze", algo), steps=1_000), (), make_env("point-maze"))
        names.append({derived.name for derived in (*found, *derive_schedule(config, ())[1])})
    expected |= {name: ["", "derived"] for name in names[1] - names[0]}
    assert listed == expected


def test_the_table_of_what_hrac_changes_in_the_paper_is_complete():
    """docs/algorithm.md: `algo`, `high.relabel`, and the degree of each kind of task in which it differs."""
    text = (Path(__file__).parents[2] / "docs" / "algorithm.md").read_text(encoding="utf-8")
    section = text.partition("## What HRAC changes")[2].partition("In the preset `paper`")[2].partition("\n## ")[0]
    listed = {tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in section.splitlines() if "| `" in line}
    kinds = {"point-maze": " in Point Maze"} | {task: " in Ant Mazes" for task in TASKS if task.startswith("ant")}
    expected = set()
    for task in TASKS:
        pair = [flat_config(preset(task, algo, "paper")) for algo in ("higl", "hrac")]
        for name in differing(*pair):
            kind = kinds[task] if name == "adjacency.degree" else ""
            expected.add((f"`{name}`{kind}", *(f"`{value_text(each[name]).lower()}`" for each in pair)))
    assert listed == expected


@every_task
def test_largest_actions_are_those_of_the_environments(task):
    """The shares of `paper.toml` were computed with these numbers."""
    assert set(abs(make_env(task).action_space.high)) == {LARGEST_ACTION[task]}


@every_task
@pytest.mark.parametrize("family", ["paper", "best"])
def test_a_preset_names_its_task_and_family(task, family):
    assert (preset(task, family=family).task, preset(task, family=family).preset) == (task, family)


# --- One recipe -------------------------------------------------------------------------------------------------------


@every_task
@pytest.mark.parametrize("algo", ["higl", "hrac"])
def test_best_has_no_number_for_a_task(task, algo):
    assert preset(task, algo) == replace(preset("Some-v0", algo), task=task)


def test_best_gives_higl_a_walked_map_and_the_paper_a_graph_of_values():
    assert preset("ant-maze-u").walks_map
    assert not preset("ant-maze-u", "hrac").walks_map
    assert not paper("ant-maze-u").walks_map


def layers_of(family: str) -> dict:
    return tomllib.loads((Path(presets.__file__).parent / f"{family}.toml").read_text())


def test_best_has_one_layer_and_the_paper_those_of_its_tasks():
    assert set(layers_of("best")) == {"all"}
    assert set(layers_of("paper")) == {layer for layers in presets._LAYERS.values() for layer in layers}


@pytest.mark.parametrize("family", ["paper", "best"])
def test_every_layer_holds_valid_settings(family):
    for layer in layers_of(family).values():
        assert differing(Config(), apply(Config(), flat(layer)))


@pytest.mark.parametrize("graph", ["values", "walked"])
def test_what_is_derivable_is_what_is_derived(graph):
    """In a short run, which has a schedule of its own; with a map, less is derived."""
    config = apply(preset("point-maze"), {"landmarks.graph": graph, "steps": 1_000})
    config, found = derive_settings(config, (), make_env("point-maze"))
    _, scheduled = derive_schedule(config, ())
    names = {derived.name for derived in (*found, *scheduled)}
    assert names == {name for name in flat_config(Config()) if is_derivable(name, config)}
    assert not any(is_derivable(name, paper("point-maze")) for name in names)


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


def test_a_task_that_the_paper_does_not_have_starts_from_its_numbers_for_ant_maze_u():
    assert preset("Some-v0", family="paper") == replace(Config(), task="Some-v0")


@pytest.mark.parametrize(
    ("family", "task", "derived"),
    [
        ("best", "pusher", True),
        ("best", "higl/Pusher-v0", True),
        ("best", "Some-v0", True),
        ("paper", "pusher", False),
        ("paper", "higl/Pusher-v0", False),
        ("paper", "Some-v0", True),
    ],
)
def test_only_the_papers_settings_of_its_own_tasks_are_not_derived(family, task, derived):
    assert is_derived(preset(task, family=family)) is derived


def test_what_has_a_choice_of_rewards():
    assert (has_rewards("pusher"), has_rewards("higl/Own-v0"), has_rewards("Some-v0")) == (True, True, False)


@pytest.mark.parametrize(
    ("algo", "landmarks", "adjacency"), [("higl", True, True), ("hrac", False, True), ("hiro", False, False)]
)
def test_what_an_algorithm_uses(algo, landmarks, adjacency):
    config = preset("ant-maze-u", algo, "paper")
    assert (config.uses_landmarks, config.uses_adjacency) == (landmarks, adjacency)


def test_a_map_needs_no_adjacency_network_and_no_novelty():
    config = preset("ant-maze-u")
    assert config.uses_landmarks
    assert [config.uses_adjacency, config.uses_novelty] == [False] * 2
