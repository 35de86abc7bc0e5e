"""Preset < file < flags; what is wrong is told in one line, with the nearest name or the expected type."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from higl.errors import SettingsError
from higl.settings.config import Config
from higl.settings.layers import apply, build_config, parse_flags, read_settings, setting_types, to_toml
from higl.settings.presets import preset

KNOWN = setting_types(Config)


def config_of(*words: str, file=None) -> Config:
    positional, flags = parse_flags(words, KNOWN)
    return build_config(({"task": positional[0]} if positional else {}) | flags, file)


def message(*words: str, file=None) -> str:
    with pytest.raises(SettingsError) as caught:
        config_of(*words, file=file)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_preset_alone():
    assert config_of("reacher") == preset("reacher")
    assert config_of("ant-maze-u", "--algo", "hrac", "--preset", "paper") == preset("ant-maze-u", "hrac", "paper")


def test_layers(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('task = "point-maze"\nalgo = "hrac"\nseed = 3\n[low]\nexploration = 0.25\nhidden = [32, 16]\n')
    config = config_of("--seed", "4", "--high.relabel", file=file)
    base = preset("point-maze", "hrac")
    expected = replace(
        base,
        seed=4,
        low=replace(base.low, exploration=0.25, hidden=(32, 16)),
        high=replace(base.high, relabel=True),
    )
    assert config == expected
    assert config_of("pusher", file=file).adjacency == preset("pusher", "hrac").adjacency


def test_forms_of_flags():
    config = config_of(
        "--low.batch-size=64", "ant-maze-u", "--steps", "2e5", "--low.hidden", "8", "4", "--high.no-relabel"
    )
    assert (config.low.batch_size, config.steps, config.low.hidden) == (64, 200_000, (8, 4))
    assert config_of("ant-maze-u", "--steps", "1_000").steps == 1000
    assert config_of("ant-maze-u", "--low.hidden_entries").low.hidden_entries == ()
    assert config_of("ant-maze-u", "--high.relabel").high.relabel
    assert config_of("ant-maze-u", "--high.relabel=false").high.relabel is False


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--landmarks.coverag", "4"], "unknown option --landmarks.coverag; did you mean --landmarks.coverage?"),
        (["--coverage", "4"], "unknown option --coverage; did you mean --landmarks.coverage?"),
        (["--landmarks.coverage", "many"], "--landmarks.coverage 'many': expected a whole number"),
        (["--landmarks.coverage", "2.5"], "--landmarks.coverage '2.5': expected a whole number"),
        (["--landmarks.coverage"], "--landmarks.coverage: expected a whole number"),
        (["--low.hidden", "8", "x"], "--low.hidden 'x': expected a whole number"),
        (["--algo", "hyro"], "--algo 'hyro': expected one of higl, hrac, hiro; did you mean hiro?"),
        (["--high.relabel=perhaps"], "--high.relabel 'perhaps': expected true or false"),
        (["--low.discount", "1.5"], "low.discount = 1.5: expected a number from 0 to 1"),
        (["--low.discount", "nan"], "low.discount = nan: expected a number from 0 to 1"),
        (["--steps", "0"], "steps = 0: expected a number more than 0"),
        (["--seed", "-1"], "seed = -1: expected a number 0 or more"),
        (["--high.subgoal_range"], "high.subgoal_range: expected at least one number"),
    ],
)
def test_what_is_wrong_with_a_flag(words, told):
    assert message("ant-maze-u", *words) == told


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
        ("low = 3", "low is a group of settings: name one of them, such as low.hidden"),
        ('[low]\nhidden = [8, "x"]', 'low.hidden = [8,"x"]: expected any number of: a whole number'),
        ("steps = ", "is not a TOML file"),
        ("[low]\ndiscount = 2", "low.discount = 2"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text, told):
    file = tmp_path / "settings.toml"
    file.write_text('task = "ant-maze-u"\n' * (not text.startswith("[")) + text)
    got = message("ant-maze-u", file=file)
    assert str(file) in got
    assert told in got


def test_missing_file_and_task(tmp_path):
    assert "no such file" in message("ant-maze-u", file=tmp_path / "none.toml")
    assert "no task" in message("--seed", "1")


@pytest.mark.parametrize("task", ["point-maze", "ant-maze-w", "pusher"])
@pytest.mark.parametrize("algo", ["higl", "hiro"])
def test_file_of_a_run_gives_the_run_again(tmp_path, task, algo):
    config = replace(preset(task, algo, "paper"), seed=7)
    (tmp_path / "config.toml").write_text(to_toml(config))
    assert config_of(file=tmp_path / "config.toml") == config
    assert apply(Config(), read_settings(tmp_path / "config.toml")) == config


def test_settings_of_the_demo():
    config = config_of(file=Path(__file__).parents[2] / "examples" / "demo.toml")
    assert (config.task, config.algo, config.reward) == ("point-maze", "higl", "sparse")


# Anything at all that a person may type: a configuration comes out that a run can use, or one line.
TEXTS = st.one_of(
    st.text(max_size=8),
    st.integers(-10, 10**7).map(str),
    st.floats().map(str),
    st.sampled_from(["higl", "true", "1e400", "", "--", "0x10", "1e6", "-0.0"]),
)


@given(st.lists(st.tuples(st.sampled_from(sorted(KNOWN)), st.lists(TEXTS, max_size=3)), max_size=4))
def test_any_flags_give_a_configuration_or_one_line(changes):
    words = ["ant-maze-u"] + [word for name, texts in changes for word in (f"--{name}", *texts)]
    result, problem = result_or_problem(words)
    if problem is None:
        assert isinstance(result, Config)
        assert result.steps > 0
        assert 0 <= result.low.discount <= 1
        assert math.isfinite(result.landmarks.cutoff)
    else:
        assert "\n" not in problem


def result_or_problem(words: list[str]) -> tuple[Config | None, str | None]:
    try:
        return config_of(*words), None
    except SettingsError as error:
        return None, str(error)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(sorted(KNOWN)), VALUES, max_size=3))
def test_any_layer_gives_a_configuration_or_an_error_of_ours(layer):
    with contextlib.suppress(SettingsError):
        assert isinstance(apply(Config(), layer), Config)
