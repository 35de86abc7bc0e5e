"""Names of runs: what differs from the preset, unambiguous and short."""

from typing import Any

from higl.envs.make import make_env
from higl.run.naming import algorithm_name, changed_settings, run_name, task_title, unnamed_changes, variant_name
from higl.settings.config import Algorithm, Config
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.layers import apply
from higl.settings.presets import preset


def test_names_tell_what_differs_from_the_preset():
    base = preset("ant-maze-u")
    assert variant_name(base) == ""
    assert variant_name(preset("ant-maze-u", "hrac")) == ""
    assert variant_name(preset("ant-maze-u", "higl", "paper")) == "paper"
    more = apply(base, {"landmarks.coverage": 60, "landmarks.novelty": 60, "high.relabel": True})
    assert variant_name(more) == "relabel-coverage60-novelty60"
    assert run_name(apply(more, {"seed": 3})) == "ant-maze-u-sparse-higl-relabel-coverage60-novelty60-3"
    assert variant_name(apply(base, {"low.exploration": 4.5})) == "low-exploration4.5"
    assert variant_name(apply(base, {"precision": "fp32"})) == ""
    free = preset("ant-maze-u", goal="none")
    assert variant_name(free) == "no-goal"
    assert variant_name(apply(free, {"landmarks.explore": "uniform"})) == "no-goal-explore-uniform"


def as_begun(task: str, algo: Algorithm = "higl", **given: Any) -> Config:
    """Return the settings of a run that has derived those that are not given."""
    config = apply(preset(task, algo), given)
    config, _ = derive_settings(config, given, make_env(task))
    return derive_schedule(apply(config, {"steps": 20_000}), given)[0]


def test_what_was_derived_does_not_name_a_run():
    for algo in ("higl", "hrac"):
        config = as_begun("reacher", algo)
        assert changed_settings(config) == unnamed_changes(config, "") == []
        assert variant_name(config, derived=True) == ""
        assert algorithm_name(config, derived=True) == algo
        assert "goal-unit0.12" in variant_name(config)
    config = as_begun("reacher", **{"low.exchange": 0.25})
    assert algorithm_name(config, derived=True) == "higl-exchange0.25"
    assert changed_settings(config) == ["low.exchange"]
    assert unnamed_changes(config, "") == ["low.exchange = 0.25 -> 0.5"]
    assert unnamed_changes(config, "exchange0.25") == []


def test_in_the_papers_settings_of_its_tasks_every_change_counts():
    config = apply(preset("reacher", family="paper"), {"high.period": 4})
    assert changed_settings(config) == ["high.period"]
    assert algorithm_name(config, derived=True) == "higl-paper-period4"


def test_names_tell_all_digits_of_a_number():
    base = preset("ant-maze-u")
    shifts = (1.0, 1.0000001, 2.5, 1e-05, 12345678.0, 1234567.0)
    names = [variant_name(apply(base, {"landmarks.shift": shift})) for shift in shifts]
    assert names == ["shift1", "shift1.0000001", "shift2.5", "shift1e-05", "shift12345678.0", "shift1234567.0"]


def test_long_names_are_cut_and_do_not_depend_on_seed_or_steps():
    many = {"hidden": (8, 8), "buffer_size": 1000, "low.discount": 0.9, "high.discount": 0.8, "low.target_noise": 0.1}
    many |= {"low.exploration": 0.3}
    first = variant_name(apply(preset("pusher"), many | {"low.exchange": 0.25}))
    other = variant_name(apply(preset("pusher"), many | {"low.exchange": 0.75}))
    again = variant_name(apply(preset("pusher"), many | {"low.exchange": 0.25, "seed": 5, "steps": 9}))
    assert first == again != other
    assert len(first) <= 80


def test_titles_leave_ids_as_they_are():
    assert task_title("ant-maze-u", "dense") == "Ant Maze U (dense)"
    for task in ("PointMaze_UMaze-v3", "lake:boat-v0", "ogbench:antmaze-medium", "mine/boat-v0"):
        assert task_title(task, "sparse") == task


def test_names_and_titles_tell_the_test_environment_if_it_is_not_the_tasks_own():
    config = preset("ant-maze-u")
    for own in (None, "ant-maze-u"):
        assert run_name(config, own) == "ant-maze-u-sparse-higl-0"
        assert task_title("ant-maze-u", "sparse", own) == "Ant Maze U (sparse)"
    assert run_name(config, "mine:my/Far-v0") == "ant-maze-u-sparse-tested-in-mine-my-Far-v0-higl-0"
    assert task_title("lake:Boat-v0", "sparse", "lake:Far-v0") == "lake:Boat-v0, tested in lake:Far-v0"
