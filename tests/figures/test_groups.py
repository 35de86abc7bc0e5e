"""Grouping runs by task, algorithm and settings."""

from support.synthetic import synthetic_run

from higl.figures.groups import group_runs
from higl.run.reading import find_runs, read_run
from higl.settings.config import LandmarksConfig


def test_groups_are_by_task_algorithm_and_settings_that_differ(runs_folder, tmp_path):
    more = synthetic_run(
        tmp_path / "more", seed=9, snapshots=1, settings={"landmarks": LandmarksConfig(coverage=60, novelty=60)}
    )
    groups = group_runs([*find_runs([runs_folder]), read_run(more)])
    assert [(group.task, group.label, len(group.runs)) for group in groups] == [
        ("Point Maze (sparse)", "HIGL, landmarks.coverage 20, landmarks.novelty 20", 3),
        ("Point Maze (sparse)", "HIGL, landmarks.coverage 60, landmarks.novelty 60", 1),
        ("Point Maze (sparse)", "HRAC", 2),
        ("Point Maze (sparse)", "HIRO", 1),
        ("Pusher (sparse)", "HIGL", 1),
    ]
