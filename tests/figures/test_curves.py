"""Curves: the numbers behind them, and that what is drawn are those numbers."""

import re

import numpy as np
import pytest
from support.synthetic import synthetic_run

from higl.figures.curves import (
    LOSSES,
    draw_curves,
    draw_times,
    evaluation_panels,
    make_curves,
    metric_panels,
    save,
    stage_times,
)
from higl.figures.statistics import (
    Smoothing,
    binned,
    interquartile_mean,
    mean_and_spread,
    smooth,
    stratified_bootstrap,
)
from higl.figures.style import variant_colour
from higl.run.reading import find_runs, read_run
from higl.text import duration, steps_text


def test_smoothing_is_the_mean_of_what_lies_in_the_window_before():
    steps, values = np.array([10.0, 20, 30, 40]), np.array([0.0, 1, 0, 1])
    at = np.array([5.0, 10, 20, 30, 40, 50])
    found = smooth(steps, values, at, Smoothing(20))
    np.testing.assert_allclose(found, [np.nan, 0, 0.5, 0.5, 0.5, np.nan])
    np.testing.assert_allclose(smooth(steps, values, steps, Smoothing(0)), values)
    np.testing.assert_allclose(smooth(steps, values, np.array([15.0]), Smoothing(0)), [0.0])
    assert np.isnan(smooth(np.zeros(0), np.zeros(0), at, Smoothing(20))).all()


def test_the_interquartile_mean_leaves_out_the_outer_quarters():
    assert interquartile_mean(np.array([0.0, 1, 2, 100])) == pytest.approx(1.5)
    assert interquartile_mean(np.array([3.0])) == pytest.approx(3.0)


def test_the_bootstrap_draws_within_tasks_and_is_repeatable():
    # Runs of one task are alike: only drawing across tasks could make the interval wide.
    alike = [np.full((4, 3), 0.2), np.full((4, 3), 0.8)]
    centre, low, high = stratified_bootstrap(alike, draws=200)
    np.testing.assert_allclose(centre, 0.5)
    np.testing.assert_allclose(low, high)
    rng = np.random.default_rng(0)
    scores = [rng.random((8, 5))]
    first, second = stratified_bootstrap(scores), stratified_bootstrap(scores)
    np.testing.assert_array_equal(first, second)
    assert (first[1] < first[0]).all()
    assert (first[0] < first[2]).all()
    assert np.isnan(stratified_bootstrap([np.ones((1, 2))])[1]).all()


def test_mean_and_spread_by_hand():
    scores = np.array([[0.0, 1.0, np.nan], [1.0, 1.0, 0.5]])
    mean, low, high = mean_and_spread(scores, "std")
    np.testing.assert_allclose(mean, [0.5, 1.0, 0.5])
    np.testing.assert_allclose(high - mean, [np.sqrt(0.5), 0.0, np.nan])
    np.testing.assert_allclose(mean_and_spread(scores, "sem")[2] - mean, [0.5, 0.0, np.nan])
    np.testing.assert_allclose(mean_and_spread(scores, "range")[1], [0.0, 1.0, np.nan])
    assert np.isnan(low[2])
    assert np.isnan(mean_and_spread(scores, "none")[1]).all()


def test_bins_average_what_falls_into_them():
    edges = np.array([0.0, 10, 20, 30])
    found = binned(np.array([5.0, 10, 11, 20, 25]), np.array([1.0, 3, 5, 7, np.nan]), edges)
    np.testing.assert_allclose(found, [2, 6, np.nan])


def test_success_of_a_run_by_hand(tmp_path):
    folder = synthetic_run(tmp_path / "run", snapshots=1)
    head = (folder / "eval.csv").read_text().splitlines()[0]
    rows = [f"{step},1.0,5,{success},0,,1" for step, success in ((5000, 0.0), (10_000, 0.4), (15_000, 0.8))]
    (folder / "eval.csv").write_text("\n".join([head, *rows]) + "\n")
    (panel,) = evaluation_panels([read_run(folder)], smoothing=Smoothing(10_000))
    (curve,) = panel.curves
    assert curve.steps.tolist() == [5000, 10_000, 15_000]
    np.testing.assert_allclose(curve.centre, [0.0, 0.2, 0.6])
    assert panel.note == "evaluations: one seed; every curve: mean over the last 10k steps"


def test_panels_curves_and_colours(runs_folder):
    runs = find_runs([runs_folder])
    maze, pusher = evaluation_panels(runs)
    assert [curve.label for curve in maze.curves] == ["HIGL (3 seeds)", "HRAC (2 seeds)", "HIRO (1 seed)"]
    assert [curve.colour for curve in maze.curves] == ["#0072B2", "#D55E00", "#009E73"]
    assert pusher.curves[0].colour == maze.curves[0].colour
    assert "± one standard deviation over seeds; every curve: mean over the last 25k steps" in maze.note
    hrac = maze.curves[1]
    assert hrac.count.tolist() == [2] * 16 + [1] * 4
    assert np.isnan(hrac.low[-1])


def test_iqm_has_a_panel_over_all_tasks_and_ends_where_a_seed_ends(runs_folder):
    maze, _, everything = evaluation_panels(find_runs([runs_folder]), iqm=True)
    assert everything.title == "All 2 tasks"
    assert [curve.label for curve in everything.curves] == ["HIGL (4 runs)"]
    assert np.isnan(maze.curves[1].centre[-1])
    assert "95% stratified bootstrap" in maze.note


def test_the_drawn_lines_are_the_curves(runs_folder):
    panels = evaluation_panels(find_runs([runs_folder]))
    figure = draw_curves(panels)
    for axes, panel in zip(figure.axes, panels, strict=True):
        lines = {line.get_gid(): line for line in axes.get_lines() if line.get_gid()}
        for curve in panel.curves:
            whole = np.where(curve.count == curve.seeds, curve.centre, np.nan)
            np.testing.assert_array_equal(lines[curve.label].get_ydata(), whole)
            np.testing.assert_array_equal(lines[curve.label].get_xdata(), curve.steps)
            assert lines[curve.label].get_color() == curve.colour
    assert panels[0].note in figure.get_supxlabel()
    assert "thin lines: not every seed has come so far" in figure.get_supxlabel()


def test_files_say_what_was_done_and_are_the_same_every_time(runs_folder, tmp_path):
    runs = find_runs([runs_folder])
    for name in ("a.svg", "b.svg", "c.png", "d.pdf"):
        save(make_curves(runs, ["success"], title="A title"), tmp_path / "new" / name)
    text = (tmp_path / "new" / "a.svg").read_text()
    assert "mean over the last 25k steps" in text
    assert "A title" in text
    assert text == (tmp_path / "new" / "b.svg").read_text()
    assert (tmp_path / "new" / "c.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "new" / "d.pdf").read_bytes().startswith(b"%PDF")


def test_losses_are_drawn_for_the_algorithms_that_have_them(runs_folder):
    panels = {panel.quantity: panel for panel in metric_panels(find_runs([runs_folder])[:6], LOSSES)}
    assert len(panels["low level: critic loss"].curves) == 3
    assert [curve.algo for curve in panels["high level: landmark loss"].curves] == ["higl"]
    assert make_curves(find_runs([runs_folder]), [], ["no/such"]) is None


def test_stage_times_leave_out_the_first_episode(runs_folder):
    times = stage_times(read_run(runs_folder / "higl-0"))
    assert times is not None
    assert times.milliseconds["low"] == pytest.approx(6.0)
    assert next(iter(times.milliseconds)) == "low"
    assert times.other == pytest.approx(0.2, abs=1e-3)
    figure = draw_times(find_runs([runs_folder]))
    assert figure is not None
    widths = [bar.get_width() for bar in figure.axes[0].containers[0]]
    np.testing.assert_allclose(widths, 6.0)


def test_long_labels_go_below_the_title_and_no_further(tmp_path):
    folders = [synthetic_run(tmp_path / f"{seed}", seed=seed, snapshots=1) for seed in range(2)]
    for name, folder in zip(("0.123456789", "0.987654321"), folders, strict=True):
        text = (folder / "config.toml").read_text()
        (folder / "config.toml").write_text(re.sub(r"^(cutoff|shift) = .*$", rf"\1 = {name}", text, flags=re.MULTILINE))
    figure = draw_curves(evaluation_panels([read_run(folder) for folder in folders]))
    assert figure.axes[0].get_legend() is None
    assert len(figure.legends[0].get_texts()) == 2


def test_words_and_colours():
    assert [steps_text(number) for number in (0, 950, 60_000, 1_250_000)] == ["0", "950", "60k", "1.25M"]
    assert [duration(number) for number in (42, 200, 7500)] == ["42s", "3m 20s", "2h 05m"]
    assert len({variant_colour("higl", variant) for variant in range(4)}) == 4
