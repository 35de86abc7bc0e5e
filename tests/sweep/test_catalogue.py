"""The paper's figures are all there; own catalogues are read, and refused with a line that says why."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from support.sweeps import make_run

from higl.errors import CatalogueError, SettingsError
from higl.run.naming import run_name, variant_name
from higl.settings.config import Config
from higl.settings.layers import apply
from higl.settings.presets import preset
from higl.sweep.catalogue import find_entry, read_catalogue
from higl.sweep.estimate import StepTimes, hours_left
from higl.sweep.launch import arguments, write_settings
from higl.sweep.plan import RunStatus, make_plan, matches, read_status

PAPER = read_catalogue()


def names(entry: str, **options) -> list[str]:
    return [run.name for run in make_plan(PAPER[entry], Path("runs"), **options)]


def test_every_figure_is_there():
    figures = ["fig3", "fig4a", "fig4b", "fig4c", "fig5a", "fig5b", "fig5c", "fig6"]
    sparse = [f"sparse-{what}" for what in ("coverage", "novelty", "landmarks", "shift", "degree")]
    assert list(PAPER) == [*figures, *sparse, "discard", "automatic-shift", "larger-maze"]


def test_figure_3_has_nine_panels_of_higl_and_hrac_with_four_seeds():
    plan = make_plan(PAPER["fig3"], Path("runs"))
    assert len(plan) == 9 * 2 * 4
    assert len({run.name for run in plan}) == len(plan)
    panels = {(run.config.task, run.config.reward) for run in plan}
    mazes = {(task, reward) for task in ("point-maze", "ant-maze-u", "ant-maze-w") for reward in ("dense", "sparse")}
    assert panels == mazes | {("reacher", "sparse"), ("pusher", "sparse"), ("ant-maze-u-stochastic", "sparse")}
    assert {run.config.steps for run in plan if run.config.task == "ant-maze-u"} == {1_000_000}
    # The first seed of every curve comes before the second of any.
    assert [run.config.seed for run in plan] == sorted(run.config.seed for run in plan)


@pytest.mark.parametrize(
    ("entry", "setting", "values"),
    [
        ("fig4a", "landmarks.coverage", [0, 10, 20]),
        ("fig4b", "landmarks.novelty", [0, 10, 20]),
        ("fig4c", "landmarks.pseudo", ["fixed", "raw"]),
        ("fig5b", "landmarks.shift", [1.0, 2.0, 4.0]),
        ("sparse-degree", "adjacency.degree", [5, 10, 20]),
        ("discard", "novelty.discard", ["goal", "adjacency"]),
        ("automatic-shift", "landmarks.pseudo", ["fixed", "automatic"]),
    ],
)
def test_ablations(entry, setting, values):
    part, name = setting.split(".")
    plan = make_plan(PAPER[entry], Path("runs"), seeds=1)
    found = [getattr(getattr(run.config, part), name) for run in plan if run.config.algo == "higl"]
    assert found == values


def test_a_run_that_several_figures_share_has_one_name():
    shared = set(names("fig5c", seeds=1)) & set(names("fig3", seeds=1))
    assert shared == {"ant-maze-u-dense-higl-0", "ant-maze-u-dense-hrac-0"}
    assert set(names("fig6")) == {"ant-maze-u-dense-higl-coverage20-0"}  # the paper's text: 20 + 20 landmarks
    # What the paper has otherwise than our preset is a run of its own.
    assert set(names("fig5b", seeds=1)) == {f"ant-maze-u-dense-higl-shift{shift}-0" for shift in (1, 2, 4)}
    assert "ant-maze-u-dense-higl-coverage20-0" in set(names("fig4a", seeds=1)) & set(names("fig5a", seeds=1))


def test_names_tell_what_differs_from_the_preset():
    base = preset("ant-maze-u")
    assert variant_name(base) == ""
    assert variant_name(preset("ant-maze-u", "hrac")) == ""
    assert variant_name(preset("ant-maze-u", "higl", "paper")) == "paper"
    more = apply(base, {"landmarks.coverage": 60, "landmarks.novelty": 60, "high.relabel": True})
    assert variant_name(more) == "relabel-coverage60-novelty60"
    assert run_name(apply(more, {"seed": 3})) == "ant-maze-u-sparse-higl-relabel-coverage60-novelty60-3"
    assert variant_name(apply(base, {"low.exploration": 4.5})) == "low-exploration4.5"


def test_names_tell_all_digits_of_a_number():
    base = preset("ant-maze-u")
    shifts = (1.0, 1.0000001, 2.5, 1e-05, 12345678.0, 1234567.0)
    names = [variant_name(apply(base, {"landmarks.shift": shift})) for shift in shifts]
    assert names == ["shift1", "shift1.0000001", "shift2.5", "shift1e-05", "shift12345678.0", "shift1234567.0"]


@pytest.mark.parametrize(("change", "differ"), [("steps = 9000", "steps"), ("steps = 5000", None)])
def test_two_runs_of_one_name_are_refused(tmp_path, change, differ):
    """Their lengths are no part of the names: one of them would be left out without a word."""
    text = OWN.replace("plain = {}", f"longer = {{ {change}, seeds = [3], high.relabel = true }}")
    (tmp_path / "own.toml").write_text(text)
    if differ is None:  # the same run, told when the catalogue is read
        with pytest.raises(CatalogueError, match="are the same on reacher"):
            read_catalogue(tmp_path / "own.toml")
        return
    message = "mine: 'longer' and 'long' both have a run reacher-sparse-.* but differ in steps: move one"
    with pytest.raises(CatalogueError, match=message):
        make_plan(read_catalogue(tmp_path / "own.toml")["mine"], Path("runs"))


def test_long_names_are_cut_and_do_not_depend_on_seed_or_steps():
    many = {"low.hidden": (8, 8), "high.hidden": (8, 8), "low.buffer_size": 1000, "high.buffer_size": 1000, "cell": 1}
    many = {name: value for name, value in many.items() if name != "cell"}
    first = variant_name(apply(preset("pusher"), many | {"low.batch_size": 7, "high.batch_size": 7}))
    other = variant_name(apply(preset("pusher"), many | {"low.batch_size": 7, "high.batch_size": 8}))
    again = variant_name(
        apply(preset("pusher"), many | {"low.batch_size": 7, "high.batch_size": 7, "seed": 5, "steps": 9})
    )
    assert first == again != other
    assert len(first) <= 80


def test_only_and_seeds():
    assert names("fig3", only=["ant-maze-u-sparse", "hrac"]) == [f"ant-maze-u-sparse-hrac-{seed}" for seed in range(4)]
    assert names("fig3", only=["reacher,pusher", "higl"], seeds=1) == ["reacher-sparse-higl-0", "pusher-sparse-higl-0"]
    assert names("fig3", only=["point*hrac-0"]) == ["point-maze-dense-hrac-0", "point-maze-sparse-hrac-0"]
    assert len(names("fig6", seeds=3)) == 3
    with pytest.raises(SettingsError, match="--only walker: matches no run of fig3"):
        names("fig3", only=["walker"])
    assert not matches("ant-maze-u-large-dense-higl-0", ["ant-maze-u-dense"])


def test_more_settings_come_last():
    plan = make_plan(PAPER["fig4a"], Path("runs"), seeds=1, more={"steps": 1000, "preset": "paper"})
    assert {(run.config.steps, run.config.preset) for run in plan} == {(1000, "paper")}
    assert [run.config.landmarks.coverage for run in plan] == [0, 10, 20]


OWN = """
[mine]
tasks = [{ task = "reacher", steps = 1000 }, { task = "gym/Other-v0", reward = "dense", steps = 2000 }]
[mine.settings]
low.hidden = [64, 64]
[mine.variants]
plain = {}
long = { steps = 5000, seeds = [3, 7], high.relabel = true }
"""


def test_own_catalogue(tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    plan = make_plan(read_catalogue(tmp_path / "own.toml")["mine"], Path("runs"))
    assert [(run.config.task, run.config.seed, run.config.steps) for run in plan] == [
        ("reacher", 0, 1000),
        ("reacher", 3, 5000),
        ("gym/Other-v0", 0, 2000),
        ("gym/Other-v0", 3, 5000),
        ("reacher", 7, 5000),
        ("gym/Other-v0", 7, 5000),
    ]
    assert all(run.config.low.hidden == (64, 64) for run in plan)
    assert plan[2].name == "gym-Other-v0-dense-higl-low-hidden64x64-0"


def test_a_task_without_a_preset_derives_what_is_not_given(tmp_path):
    """Its settings file says what the catalogue says, and the run's folder may hold more that differs."""
    (tmp_path / "own.toml").write_text(OWN)
    run = make_plan(read_catalogue(tmp_path / "own.toml")["mine"], tmp_path)[2]
    assert run.derives
    write_settings(run)
    given = {"task": "gym/Other-v0", "reward": "dense", "seed": 0, "steps": 2000, "low": {"hidden": [64, 64]}}
    assert tomllib.loads(run.settings_file.read_text()) == given
    assert arguments(run, 5.0)[0] == "train"
    settings = {"task": run.config.task, "reward": "dense", "steps": 2000, "low.exploration": 0.1}
    make_run(run.folder, [0.5], **settings, **{"low.hidden": (64, 64)})
    assert read_status(run).state == "finished"
    assert arguments(run, 5.0)[:2] == ["resume", str(run.folder)]
    elsewhere = replace(run, folder=tmp_path / "other" / run.name)
    make_run(elsewhere.folder, [0.5], **settings, **{"low.hidden": (8, 8)})
    assert read_status(elsewhere).state == "other settings"
    assert hours_left([run], [RunStatus("waiting")], StepTimes(tmp_path), lambda config: 36.0) == [None]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("low.hidden", "low.hiden", "variant 'plain': unknown setting low.hiden; did you mean low.hidden?"),
        ("[64, 64]", "-3", "variant 'plain': low.hidden"),
        ("high.relabel = true", "algo = 'sac'", "variant 'long': algo"),
        ("high.relabel = true", "task = 'pusher'", "task is not a setting here"),
        ("[mine.settings]", "[mine.setings]", "mine: unknown 'setings'; did you mean settings?"),
        ("[3, 7]", "-1", "variant 'long': seeds = -1: expected how many (4, at most 1,000) or which"),
        ("[3, 7]", "[]", "expected how many (4, at most 1,000) or which"),
        ("[3, 7]", "[true]", "variant 'long': seeds = [True]: expected how many"),
        ("[3, 7]", "[99999999999999999999]", "variant 'long': seeds = [99999999999999999999]: expected how many"),
        ("[3, 7]", "10000000000000", "variant 'long': seeds = 10000000000000: expected how many"),
        (", steps = 1000 }", " }", "no steps: give them to the sweep or to each of its tasks"),
        ("steps = 1000 }", "steps = 1.5 }", "steps = 1.5: expected a whole number"),
        ('task = "reacher"', 'task = "reecher"', "tasks: unknown task 'reecher'; did you mean reacher?"),
        ('"dense"', '"thick"', "reward = 'thick': expected one of sparse, dense"),
        ('task = "reacher"', 'tusk = "reacher"', "tasks: expected { task = "),
        ("plain = {}", "plain = 3", "variant 'plain': expected a table of settings"),
        ("plain = {}", "plain = {}\nother = {}", "the variants 'plain' and 'other' are the same on reacher"),
        ("[mine]", "[mine]\ndraw = 'boxes'", "draw = 'boxes': expected one of curves, landmarks"),
        ("[mine]", "[mine", "is not a TOML file"),
        ("[mine.variants]", "[mine.variant]", "unknown 'variant'; did you mean variants?"),
    ],
)
def test_mistakes_are_named(tmp_path, before, after, message):
    assert before in OWN
    (tmp_path / "own.toml").write_text(OWN.replace(before, after, 1))
    with pytest.raises(CatalogueError) as error:
        read_catalogue(tmp_path / "own.toml")
    assert message in str(error.value)
    assert "own.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_no_such_file_or_entry(tmp_path):
    with pytest.raises(CatalogueError, match="no such file"):
        read_catalogue(tmp_path / "none.toml")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(CatalogueError, match="has no sweep"):
        read_catalogue(tmp_path / "empty.toml")
    with pytest.raises(CatalogueError, match="no sweep 'fig33' in the catalogue; did you mean fig3"):
        find_entry(PAPER, "fig33")


def test_the_default_config_is_a_run_of_the_catalogue():
    assert run_name(Config()) in names("fig3")
