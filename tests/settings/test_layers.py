"""Preset < file < flags; messages of one line with the nearest name or the expected type."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from higl.errors import SettingsError
from higl.settings.config import Config
from higl.settings.flat import flat_config
from higl.settings.layers import apply, build_config, complete_config, read_settings, setting_types, to_toml
from higl.settings.presets import preset

KNOWN = setting_types(Config)


def message(layer: dict, file=None) -> str:
    with pytest.raises(SettingsError) as caught:
        build_config(layer, file)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_preset_alone():
    assert build_config({"task": "reacher"}) == preset("reacher")
    chosen = {"task": "ant-maze-u", "algo": "hrac", "preset": "paper"}
    assert build_config(chosen) == preset("ant-maze-u", "hrac", "paper")


def test_layers(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('task = "point-maze"\nalgo = "hrac"\nseed = 3\nhidden = [32, 16]\n[low]\nexploration = 0.25\n')
    config = build_config({"seed": 4, "high.relabel": True}, file)
    base = preset("point-maze", "hrac")
    expected = replace(
        base,
        seed=4,
        hidden=(32, 16),
        low=replace(base.low, exploration=0.25),
        high=replace(base.high, relabel=True),
    )
    assert config == expected
    other = build_config({"task": "pusher"}, file)
    assert other.task == "pusher"
    assert other.adjacency == preset("pusher", "hrac").adjacency


def test_a_task_has_one_name_in_files_and_flags(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('task = "higl/PointMaze-v0"\n')
    assert build_config({}, file).task == build_config({"task": "higl/PointMaze-v0"}).task == "point-maze"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("low.discount", 1.5, "low.discount = 1.5: expected a number from 0 to 1"),
        ("low.action_share", 0.0, "low.action_share = 0.0: expected a number more than 0, up to 1"),
        ("low.action_share", 1.1, "low.action_share = 1.1: expected a number more than 0, up to 1"),
        ("low.discount", float("nan"), "low.discount = nan: expected a number from 0 to 1"),
        ("steps", 0, "steps = 0: expected a number more than 0"),
        ("seed", -1, "seed = -1: expected a number from 0 to 4,294,967,295"),
        ("high.subgoal_range", (), "high.subgoal_range: expected at least one number"),
    ],
)
def test_values_out_of_range(name, value, told):
    assert message({"task": "ant-maze-u", name: value}) == told


def test_every_number_has_a_range():
    for name, kind in KNOWN.items():
        value = {int: -1, float: -1.0, tuple[int, ...]: (-1,), tuple[float, ...]: (-1.0,)}.get(kind)
        if value is not None:
            with pytest.raises(SettingsError, match=rf"{name} = -1.*: expected a number"):
                apply(Config(), {name: value})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[landmarks]\ncoverage = "x"', 'landmarks.coverage = "x": expected a whole number'),
        ("[landmark]\ncoverage = 4", "unknown setting landmark.coverage; did you mean landmarks.coverage?"),
        ("seed = 1.5", "seed = 1.5: expected a whole number"),
        ("low = 3", "low is a group of settings: name one of them, such as low.actor_learning_rate"),
        ('hidden = [8, "x"]', 'hidden = [8,"x"]: expected any number of: a whole number'),
        ("steps = ", "is not a TOML file"),
        ("[low]\ndiscount = 2", "low.discount = 2"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text, told):
    file = tmp_path / "settings.toml"
    file.write_text('task = "ant-maze-u"\n' * (not text.startswith("[")) + text)
    got = message({"task": "ant-maze-u"}, file)
    assert str(file) in got
    assert told in got


def test_missing_file_and_task(tmp_path):
    assert "no such file" in message({"task": "ant-maze-u"}, tmp_path / "none.toml")
    assert "no task" in message({"seed": 1})


@pytest.mark.parametrize("task", ["point-maze", "ant-maze-w", "pusher"])
@pytest.mark.parametrize("algo", ["higl", "hiro"])
def test_file_of_a_run_gives_the_run_again(tmp_path, task, algo):
    config = replace(preset(task, algo, "paper"), seed=7)
    (tmp_path / "config.toml").write_text(to_toml(config))
    assert build_config({}, tmp_path / "config.toml") == config
    assert apply(Config(), read_settings(tmp_path / "config.toml")) == config


def test_complete_settings():
    settings = flat_config(preset("pusher", "hrac"))
    assert complete_config(settings) == preset("pusher", "hrac")
    with pytest.raises(SettingsError, match="unknown setting sed; did you mean seed"):
        complete_config(settings | {"sed": 1})
    with pytest.raises(SettingsError, match=r"low\.discount = 2\.0: expected a number from 0 to 1"):
        complete_config(settings | {"low.discount": 2.0})
    del settings["seed"]
    with pytest.raises(SettingsError, match=r"^missing setting seed$"):
        complete_config(settings)
    del settings["low.discount"]
    with pytest.raises(SettingsError, match=r"^missing settings seed, low\.discount$"):
        complete_config(settings)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(sorted(KNOWN)), VALUES, max_size=3))
def test_any_layer_gives_a_configuration_or_an_error_of_ours(layer):
    with contextlib.suppress(SettingsError):
        assert isinstance(apply(Config(), layer), Config)


def test_numbers_of_numpy():
    given = {
        "steps": np.int64(500),
        "low.discount": np.float32(0.5),
        "hidden": np.array([8, 4]),
        "seed": np.uint8(3),
    }
    config = build_config({"task": "reacher", "high.subgoal_range": (np.float64(2.0),)} | given)
    assert (config.steps, config.low.discount, config.hidden, config.seed) == (500, 0.5, (8, 4), 3)
    assert type(config.steps) is int
    assert config.high.subgoal_range == (2.0,)
    assert message({"task": "reacher", "steps": np.float64(0.5)}) == "steps = 0.5: expected a whole number"


def test_networks_have_hidden_layers():
    assert message({"task": "reacher", "hidden": ()}) == "hidden: expected at least one number"
    assert build_config({"task": "reacher", "low.hidden_entries": ()}).low.hidden_entries == ()


@pytest.mark.parametrize("seed", [-1, 2**32, 2**70])
def test_seeds_out_of_range(seed):
    assert message({"task": "reacher", "seed": seed}) == f"seed = {seed}: expected a number from 0 to 4,294,967,295"
    assert build_config({"task": "reacher", "seed": 2**32 - 1}).seed == 2**32 - 1


def test_the_degree_of_hrac_follows_the_period():
    chosen = {"task": "ant-maze-u", "algo": "hrac", "high.period": 7}
    assert build_config(chosen).adjacency.degree == 7
    assert build_config(chosen | {"algo": "hiro"}).adjacency.degree == 7
    assert build_config(chosen | {"adjacency.degree": 4}).adjacency.degree == 4
    assert build_config(chosen | {"algo": "higl"}).adjacency.degree == preset("ant-maze-u").adjacency.degree


def test_suggestions_for_a_learning_rate():
    told = message({"task": "reacher", "learning_rate": 1e-3})
    for name in ("low.actor", "high.actor"):
        assert f"{name}_learning_rate" in told


@pytest.mark.parametrize("task", ["point-maze", "ant-maze-w", "FetchReach-v4"])
def test_without_a_goal_every_task_walks_a_map(task, tmp_path):
    config = build_config({"task": task, "goal": "none"})
    assert config == preset(task, goal="none")
    assert config.walks_map
    assert config.high.random_steps > 0
    file = tmp_path / "settings.toml"
    file.write_text('goal = "none"\n')
    assert build_config({"task": task}, file) == config


@pytest.mark.parametrize("algo", ["hrac", "hiro"])
@pytest.mark.parametrize("family", ["best", "paper"])
def test_the_baselines_draw_goals_where_the_map_explores(algo, family):
    config = build_config({"task": "point-maze", "goal": "none", "algo": algo, "preset": family})
    assert config.draws_goals
    assert not build_config({"task": "point-maze", "goal": "none"}).draws_goals
    assert not build_config({"task": "point-maze", "algo": algo}).draws_goals


def test_what_cannot_do_without_a_goal():
    for layer in ({"preset": "paper"}, {"landmarks.graph": "values"}):
        assert 'higl needs landmarks.graph = "walked"' in message({"task": "point-maze", "goal": "none"} | layer)
    assert "expected one of given, none" in message({"task": "point-maze", "goal": "nowhere"})
