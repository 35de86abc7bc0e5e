"""The numbers behind curves."""

import json

import numpy as np
import pytest
from support.synthetic import synthetic_run

from higl.figures.groups import repeated_seeds
from higl.figures.panels import EXPLORED, LOSSES, UNMEASURED, evaluation_panels, metric_panels, stage_times
from higl.figures.statistics import Smoothing
from higl.run.reading import find_runs, read_run
from higl.settings.layers import apply, to_toml
from higl.settings.presets import preset


def test_success_of_a_run_by_hand(tmp_path):
    folder = synthetic_run(tmp_path / "run", snapshots=1)
    head = (folder / "eval.csv").read_text().splitlines()[0]
    rows = [f"{step},1.0,5,{success},0,,1" for step, success in ((5000, 0.0), (10_000, 0.4), (15_000, 0.8))]
    (folder / "eval.csv").write_text("\n".join([head, *rows]) + "\n")
    (panel,) = evaluation_panels([read_run(folder)], smoothing=Smoothing(10_000))
    (curve,) = panel.curves
    assert curve.steps.tolist() == [5000, 10_000, 15_000]
    np.testing.assert_allclose(curve.centre, [0.0, 0.2, 0.6])
    assert panel.note == "one seed per curve; smoothed over the last 10k steps"


def test_one_panel_per_task_and_one_curve_per_group(runs_folder):
    runs = find_runs([runs_folder])
    maze, pusher = evaluation_panels(runs)
    assert [curve.label for curve in maze.curves] == ["HIGL (3 seeds)", "HRAC (2 seeds)", "HIRO (1 seed)"]
    assert [curve.colour for curve in maze.curves] == ["#0072B2", "#D55E00", "#009E73"]
    assert pusher.curves[0].colour == maze.curves[0].colour
    assert maze.note == "mean over seeds; band: ± one standard deviation; smoothed over the last 25k steps"
    hrac = maze.curves[1]
    assert hrac.count.tolist() == [2] * 16 + [1] * 4
    assert np.isnan(hrac.low[-1])


def test_iqm_has_a_panel_over_all_tasks_and_ends_where_a_seed_ends(runs_folder):
    maze, _, everything = evaluation_panels(find_runs([runs_folder]), iqm=True)
    assert everything.title == "All 2 tasks"
    assert [curve.label for curve in everything.curves] == ["HIGL (4 runs)"]
    assert np.isnan(maze.curves[1].centre[-1])
    assert "95% stratified bootstrap" in maze.note


def test_only_algorithms_that_have_a_metric_get_a_curve_of_it(runs_folder):
    panels = {panel.quantity: panel for panel in metric_panels(find_runs([runs_folder])[:6], LOSSES)}
    assert len(panels["low level: critic loss"].curves) == 3
    assert [curve.algo for curve in panels["high level: landmark loss"].curves] == ["higl"]


def test_stage_times_leave_out_the_first_episode(runs_folder):
    times = stage_times(read_run(runs_folder / "higl-0"))
    assert times is not None
    assert next(iter(times.stages)) == "low"
    assert times.stages["low"] == pytest.approx(6.0)
    assert times.stages[UNMEASURED] == pytest.approx(0.2, abs=1e-3)
    assert times.total == pytest.approx(1e3 * times.seconds / times.steps)


def test_iqm_of_seeds_that_share_no_step(tmp_path):
    folders = [synthetic_run(tmp_path / f"{seed}", seed=seed, snapshots=1) for seed in range(2)]
    header, *rows = (folders[0] / "eval.csv").read_text().splitlines()
    (folders[0] / "eval.csv").write_text("\n".join([header, *rows[:3]]) + "\n")
    (folders[1] / "eval.csv").write_text("\n".join([header, *rows[5:]]) + "\n")
    (panel,) = evaluation_panels([read_run(folder) for folder in folders], iqm=True)
    assert np.isnan(panel.curves[0].centre).all()
    assert panel.curves[0].count.max() == 1


def test_a_run_that_took_no_time_has_no_stage_times(run_folder):
    (run_folder / "metrics.jsonl").write_text('{"step": 500, "seconds/low": 0.0, "time": 0.0}\n')
    assert stage_times(read_run(run_folder)) is None


def test_two_runs_of_a_seed_count_as_one(tmp_path):
    runs = [synthetic_run(tmp_path / name, seed=seed, snapshots=0) for name, seed in (("a", 0), ("b", 0), ("c", 1))]
    columns = [read_run(run).evaluations["success"] for run in runs]
    (panel,) = evaluation_panels(find_runs([tmp_path]), smoothing=Smoothing(0))
    (curve,) = panel.curves
    assert (curve.label, curve.seeds) == ("HIGL (2 seeds, 3 runs)", 2)
    np.testing.assert_allclose(curve.centre, ((columns[0] + columns[1]) / 2 + columns[2]) / 2)
    (loss,) = metric_panels(find_runs([tmp_path]), {"low/critic_loss": "loss"})
    assert loss.curves[0].seeds == 2
    (alone,) = evaluation_panels(find_runs([tmp_path / "a", tmp_path / "b"]))
    assert alone.curves[0].label == "HIGL (1 seed, 2 runs)"
    assert alone.note.startswith("one seed per curve")
    assert repeated_seeds(find_runs([tmp_path])) == [
        "Point Maze (sparse), HIGL: 2 runs have seed 0 (a, b): their mean counts as one seed."
    ]
    assert repeated_seeds(find_runs([tmp_path / "a", tmp_path / "c"])) == []


def test_curves_of_a_run_without_a_goal(tmp_path):
    """How much was visited, and success as zero-shot."""
    folder = synthetic_run(tmp_path / "run", snapshots=1)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    rows = [row | {"explored_share": place / len(rows)} for place, row in enumerate(rows, 1)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (panel,) = metric_panels([read_run(folder)], EXPLORED)
    assert (panel.quantity, panel.limits) == ("share of the maze visited", (0.0, 1.0))
    assert panel.curves[0].centre[-1] > 0.9
    assert evaluation_panels([read_run(folder)])[0].quantity == "success rate"
    config = apply(preset("point-maze", goal="none"), {"steps": read_run(folder).settings["steps"]})
    (folder / "config.toml").write_text(to_toml(config))
    assert evaluation_panels([read_run(folder)])[0].quantity == "success rate (zero-shot)"
