"""Grouping runs by task, algorithm and settings."""

from support.synthetic import synthetic_run

from higl.figures.groups import group_runs
from higl.figures.panels import evaluation_panels
from higl.run.reading import find_runs, read_run
from higl.settings.config import EvaluationConfig, LandmarksConfig


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


def test_seeds_whose_evaluations_are_spaced_differently_are_one_curve(tmp_path):
    """In an environment that is about as slow as the limit, the interval depends on how busy the machine was."""
    for seed, every in enumerate([5_000, 25_000]):
        settings = {"evaluation": EvaluationConfig(every=every)}
        synthetic_run(tmp_path / f"run-{seed}", seed=seed, snapshots=0, settings=settings)
    [group] = group_runs(find_runs([tmp_path]))
    assert (group.label, len(group.runs)) == ("HIGL", 2)


def test_runs_that_began_with_what_others_had_learned_are_kept_apart(tmp_path):
    """Also where all settings agree; settings that differ are named only if that does not tell curves apart."""
    free, other = {"steps": 40_000, "goal": "none"}, {"steps": 5_000, "goal": "given"}
    for place, before in enumerate([None, None, free, free, other]):
        synthetic_run(tmp_path / f"run-{place}", seed=place, snapshots=0, facts={"before": before})

    def curves() -> set[tuple[str, int]]:
        return {(group.label, len(group.runs)) for group in group_runs(find_runs([tmp_path]))}

    expected = {("HIGL", 2), ("HIGL, after 40k steps without a goal", 2), ("HIGL, after 5k steps", 1)}
    assert curves() == expected
    unit = {"goal_unit": (2.0,)}
    synthetic_run(tmp_path / "run-5", seed=5, snapshots=0, facts={"before": free | {"steps": 1_000}}, settings=unit)
    assert curves() == expected | {("HIGL, after 1k steps without a goal", 1)}
    synthetic_run(tmp_path / "run-6", seed=6, snapshots=0, settings=unit)
    assert ("HIGL, after 40k steps without a goal, goal_unit [1]", 2) in curves()
    assert ("HIGL, goal_unit [2]", 1) in curves()


def test_runs_with_other_test_environments_are_kept_apart(tmp_path):
    """Their success is that of another task; naming the task's own changes nothing."""
    for seed, test_env in enumerate([None, "point-maze", "mine:Far-v0", "mine:Far-v0", "mine:Near-v0"]):
        synthetic_run(tmp_path / f"run-{seed}", seed=seed, snapshots=0, facts={"test_env": test_env})
    groups = group_runs(find_runs([tmp_path]))
    assert [(group.task, group.label, len(group.runs)) for group in groups] == [
        ("Point Maze (sparse)", "HIGL", 2),
        ("Point Maze (sparse), tested in mine:Far-v0", "HIGL", 2),
        ("Point Maze (sparse), tested in mine:Near-v0", "HIGL", 1),
    ]
    assert [panel.title for panel in evaluation_panels(find_runs([tmp_path]))] == [group.task for group in groups]
