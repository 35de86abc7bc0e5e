"""The runs of an entry: names, order, choice, and the status of each."""

from pathlib import Path

import pytest
from support.sweeps import OWN_CATALOGUE, make_run

from higl.errors import CatalogueError, SettingsError
from higl.run.folder import RunFolder
from higl.run.naming import run_name
from higl.settings.presets import preset
from higl.sweep.catalogue import read_catalogue
from higl.sweep.plan import PlannedRun, RunStatus, make_plan, matches, presets_text, read_status

PAPER = read_catalogue()


def names(entry: str, **options) -> list[str]:
    return [run.name for run in make_plan(PAPER[entry], Path("runs"), **options)]


def test_figure_3_has_nine_panels_with_four_seeds_of_higl_and_hrac():
    plan = make_plan(PAPER["fig3"], Path("runs"))
    assert len(plan) == 9 * 2 * 4
    assert len({run.name for run in plan}) == len(plan)
    panels = {(run.config.task, run.config.reward) for run in plan}
    mazes = {(task, reward) for task in ("point-maze", "ant-maze-u", "ant-maze-w") for reward in ("dense", "sparse")}
    assert panels == mazes | {("reacher", "sparse"), ("pusher", "sparse"), ("ant-maze-u-stochastic", "sparse")}
    assert {run.config.steps for run in plan if run.config.task == "ant-maze-u"} == {1_000_000}
    # Every curve gets its first seed before any gets its second.
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
def test_ablations_vary_one_setting(entry, setting, values):
    part, name = setting.split(".")
    plan = make_plan(PAPER[entry], Path("runs"), seeds=1)
    found = [getattr(getattr(run.config, part), name) for run in plan if run.config.algo == "higl"]
    assert found == values


def test_figures_share_runs_with_the_same_settings():
    shared = set(names("fig5c", seeds=1)) & set(names("fig3", seeds=1))
    assert shared == {"ant-maze-u-dense-higl-paper-0", "ant-maze-u-dense-hrac-paper-0"}
    assert set(names("fig6")) == {"ant-maze-u-dense-higl-paper-0"}  # the paper's text: 20 + 20 landmarks
    variants = {f"ant-maze-u-dense-higl-paper{shift}-0" for shift in ("-shift1", "", "-shift4")}
    assert set(names("fig5b", seeds=1)) == variants
    assert "ant-maze-u-dense-higl-paper-0" in set(names("fig4a", seeds=1)) & set(names("fig5a", seeds=1))
    # With our preset they are separate runs.
    ours = {run.name for run in make_plan(PAPER["fig5b"], Path("runs"), seeds=1, more={"preset": "best"})}
    assert ours == {f"ant-maze-u-dense-higl{shift}-0" for shift in ("-shift1", "", "-shift4")}


def test_default_settings_are_a_run_of_the_catalogue():
    assert run_name(preset("ant-maze-u")) in names("fig3-best")
    assert run_name(preset("ant-maze-u", family="paper")) in names("fig3")


def test_choice_of_runs_by_name_and_number_of_seeds():
    hrac = [f"ant-maze-u-sparse-hrac-{seed}" for seed in range(4)]
    arms = ["reacher-sparse-higl-0", "pusher-sparse-higl-0"]
    assert names("fig3-best", only=["ant-maze-u-sparse", "hrac"]) == hrac
    assert names("fig3-best", only=["reacher,pusher", "higl"], seeds=1) == arms
    assert names("fig3-best", only=["point*hrac-0"]) == ["point-maze-dense-hrac-0", "point-maze-sparse-hrac-0"]
    assert len(names("fig6", seeds=3)) == 3
    with pytest.raises(SettingsError, match="--only walker: matches no run of fig3"):
        names("fig3", only=["walker"])
    assert not matches("ant-maze-u-large-dense-higl-0", ["ant-maze-u-dense"])


def test_settings_of_the_command_line_override_the_entry():
    plan = make_plan(PAPER["fig4a"], Path("runs"), seeds=1, more={"steps": 1000, "preset": "best"})
    assert {(run.config.steps, run.config.preset) for run in plan} == {(1000, "best")}
    assert [run.config.landmarks.coverage for run in plan] == [0, 10, 20]


def test_plan_of_an_own_catalogue(tmp_path):
    (tmp_path / "own.toml").write_text(OWN_CATALOGUE)
    plan = make_plan(read_catalogue(tmp_path / "own.toml")["mine"], Path("runs"))
    assert [(run.config.task, run.config.seed, run.config.steps) for run in plan] == [
        ("reacher", 0, 1000),
        ("reacher", 3, 5000),
        ("gym/Other-v0", 0, 2000),
        ("gym/Other-v0", 3, 5000),
        ("reacher", 7, 5000),
        ("gym/Other-v0", 7, 5000),
    ]
    assert all(run.config.hidden == (64, 64) for run in plan)
    assert plan[2].name == "gym-Other-v0-dense-higl-hidden64x64-0"


@pytest.mark.parametrize(("change", "differ"), [("steps = 9000", "steps"), ("steps = 5000", None)])
def test_different_runs_with_the_same_name_are_rejected(tmp_path, change, differ):
    """The number of steps is not part of the name, so one of them would be left out silently."""
    text = OWN_CATALOGUE.replace("plain = {}", f"longer = {{ {change}, seeds = [3], high.relabel = true }}")
    (tmp_path / "own.toml").write_text(text)
    if differ is None:  # the same run, rejected when the catalogue is read
        with pytest.raises(CatalogueError, match="are the same on reacher"):
            read_catalogue(tmp_path / "own.toml")
        return
    message = "mine: 'longer' and 'long' both have a run reacher-sparse-.* but differ in steps: move one"
    with pytest.raises(CatalogueError, match=message):
        make_plan(read_catalogue(tmp_path / "own.toml")["mine"], Path("runs"))


@pytest.fixture
def derived(tmp_path) -> PlannedRun:
    """A run on an environment of a user."""
    (tmp_path / "own.toml").write_text(OWN_CATALOGUE)
    return make_plan(read_catalogue(tmp_path / "own.toml")["mine"], tmp_path)[2]


def test_what_derives_is_all_but_the_paper_on_its_tasks():
    assert all(run.derives for run in make_plan(PAPER["fig3-best"], Path("runs")))
    assert not any(run.derives for run in make_plan(PAPER["fig3"], Path("runs")))


@pytest.mark.parametrize(("hidden", "state"), [((64, 64), "finished"), ((8, 8), "other settings")])
def test_folder_of_a_run_that_derives_settings_may_differ_in_them(derived, hidden, state):
    assert derived.derives
    assert derived.given["hidden"] == [64, 64]
    derived_settings = {"low.exploration": 0.1}
    settings = {"task": derived.config.task, "reward": "dense", "steps": 2000, "hidden": hidden}
    make_run(derived.folder, [0.5], **settings, **derived_settings)
    assert read_status(derived).state == state


def status_of(folder: Path, *, status: str, saved_step: int, asked: int) -> RunStatus:
    """Return the status of a run of 1,000 steps in a plan that asks for `asked` steps."""
    [run, *_] = make_plan(PAPER["fig6"], folder, more={"steps": 1000})
    written = RunFolder.create(run.folder, run.config, print)
    written.update(status=status, saved_step=saved_step, message="out of memory" if status == "failed" else None)
    written.close()
    return read_status(make_plan(PAPER["fig6"], folder, more={"steps": asked})[0])


@pytest.mark.parametrize(
    ("status", "saved_step", "asked", "state"),
    [
        ("finished", 1000, 1000, "finished"),
        ("finished", 1000, 500, "finished"),
        ("finished", 1000, 2000, "stopped"),
        ("stopped", 600, 1000, "stopped"),
        ("stopped", 600, 600, "finished"),  # `resume --steps 500` would be rejected every time
        ("stopped", 600, 500, "finished"),
        ("stopped", 600, 700, "stopped"),
        ("running", 600, 1000, "stopped"),  # no process holds the lock: it was killed
        ("failed", 600, 1000, "failed"),
    ],
)
def test_status_depends_on_the_steps_that_the_plan_asks_for(tmp_path, status, saved_step, asked, state):
    found = status_of(tmp_path, status=status, saved_step=saved_step, asked=asked)
    assert (found.state, found.done, found.usable) == (state, state == "finished", True)
    assert found.reason == ("out of memory" if state == "failed" else None)


def test_status_of_folders_that_are_missing_or_damaged(tmp_path):
    [run, *_] = make_plan(PAPER["fig6"], tmp_path)
    assert read_status(run) == RunStatus("waiting")
    make_run(run.folder, [0.5])
    (run.folder / "config.toml").write_text("[broken")
    found = read_status(run)
    assert (found.state, found.usable) == ("damaged", False)
    assert "config.toml" in str(found.reason)


def test_presets_are_named(tmp_path):
    (tmp_path / "own.toml").write_text(OWN_CATALOGUE.replace("plain = {}", 'plain = { preset = "paper" }'))
    assert presets_text(make_plan(PAPER["fig3"], tmp_path)) == "preset paper"
    assert presets_text(make_plan(PAPER["fig3"], tmp_path, more={"preset": "best"})) == "preset best"
    plan = make_plan(read_catalogue(tmp_path / "own.toml")["mine"], tmp_path)
    assert presets_text(plan) == "preset paper and best"
