"""Grouping runs by task, algorithm and settings."""

from support.synthetic import synthetic_run

from higl.figures.groups import group_runs
from higl.run.reading import find_runs, read_config, read_run
from higl.settings.config import LandmarksConfig


def test_groups_are_by_task_algorithm_and_settings_that_differ(runs_folder, tmp_path):
    more = synthetic_run(
        tmp_path / "more", seed=9, snapshots=1, settings={"landmarks": LandmarksConfig(coverage=60, novelty=60)}
    )
    groups = group_runs([*find_runs([runs_folder]), read_run(more)])
    assert [(group.task, group.label, len(group.runs)) for group in groups] == [
        ("Point Maze (sparse)", "HIGL, landmarks.coverage 40, landmarks.novelty 20", 3),
        ("Point Maze (sparse)", "HIGL, landmarks.coverage 60, landmarks.novelty 60", 1),
        ("Point Maze (sparse)", "HRAC", 2),
        ("Point Maze (sparse)", "HIRO", 1),
        ("Pusher (sparse)", "HIGL", 1),
    ]


def test_a_setting_that_an_older_run_does_not_have_has_its_default(runs_folder, tmp_path):
    old = synthetic_run(tmp_path / "old", seed=7, snapshots=1)
    text = (old / "config.toml").read_text()
    kept = [line for line in text.splitlines() if not line.startswith("margin")]
    assert len(kept) < len(text.splitlines())
    (old / "config.toml").write_text("\n".join(kept))
    assert len(group_runs([read_run(old), read_run(runs_folder / "higl-0")])) == 1


def test_a_run_of_before_a_setting_is_no_seed_of_those_with_it(runs_folder, tmp_path):
    """What runs did before there was the setting is not its default today: `read_config` says the same."""
    old = synthetic_run(tmp_path / "old", seed=7, snapshots=1)
    kept = [line for line in (old / "config.toml").read_text().splitlines() if not line.startswith("central")]
    (old / "config.toml").write_text("\n".join(kept))
    assert read_run(old).settings["landmarks.central"] is read_config(old).landmarks.central is False
    groups = group_runs([read_run(old), read_run(runs_folder / "higl-0")])
    assert [group.label for group in groups] == ["HIGL, landmarks.central False", "HIGL, landmarks.central True"]
