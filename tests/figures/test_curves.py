"""Pictures of curves: what is drawn are the numbers of the panels."""

import re

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from support.synthetic import synthetic_run

from higl.figures.curves import draw_curves, draw_times, make_curves, save
from higl.figures.panels import evaluation_panels
from higl.run.reading import find_runs, read_run
from higl.settings.config import LandmarksConfig


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
    assert "thin lines: steps that not every seed has reached" in figure.get_supxlabel()


def test_files_describe_their_curves_and_are_reproducible(runs_folder, tmp_path):
    runs = find_runs([runs_folder])
    for name in ("a.svg", "b.svg", "c.png", "d.pdf"):
        save(make_curves(runs, ["success"], title="A title"), tmp_path / "new" / name)
    text = (tmp_path / "new" / "a.svg").read_text()
    assert "smoothed over the last 25k steps" in text
    assert "A title" in text
    assert text == (tmp_path / "new" / "b.svg").read_text()
    assert (tmp_path / "new" / "c.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "new" / "d.pdf").read_bytes().startswith(b"%PDF")


def test_long_labels_go_above_the_axes(tmp_path):
    folders = [synthetic_run(tmp_path / f"{seed}", seed=seed, snapshots=1) for seed in range(2)]
    for name, folder in zip(("0.123456789", "0.987654321"), folders, strict=True):
        text = (folder / "config.toml").read_text()
        (folder / "config.toml").write_text(re.sub(r"^(cutoff|shift) = .*$", rf"\1 = {name}", text, flags=re.MULTILINE))
    figure = draw_curves(evaluation_panels([read_run(folder) for folder in folders]))
    assert figure.axes[0].get_legend() is None
    assert len(figure.legends[0].get_texts()) == 2


def test_a_figure_without_data_is_not_drawn(runs_folder):
    assert make_curves(find_runs([runs_folder]), [], ["no/such"]) is None


def test_bars_of_stage_times_are_those_of_the_runs(runs_folder):
    figure = draw_times(find_runs([runs_folder]))
    assert figure is not None
    widths = [bar.get_width() for bar in figure.axes[0].containers[0]]
    np.testing.assert_allclose(widths, 6.0)


def flat_runs(folder, success=1.0):
    """Return runs of three algorithms and a variant whose success is the same in all evaluations."""
    more = {"landmarks": LandmarksConfig(coverage=60)}
    places = [
        *(synthetic_run(folder / algo, algo=algo, snapshots=0) for algo in ("higl", "hrac", "hiro")),
        synthetic_run(folder / "more", snapshots=0, settings=more),
    ]
    runs = [read_run(place) for place in places]
    for run in runs:
        run.evaluations["success"][:] = success
    return runs


def test_every_one_of_several_curves_on_top_of_each_other_can_be_seen(tmp_path):
    """The picture has pixels of each curve's colour, although their lines are the same."""
    panels = evaluation_panels(flat_runs(tmp_path))
    figure = draw_curves(panels)
    for legend in [*figure.legends, *(axes.get_legend() for axes in figure.axes)]:
        if legend is not None:
            legend.remove()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[..., :3]
    (panel,) = panels
    assert len(panel.curves) == 4
    for curve in panel.curves:
        seen = (picture == np.round(255 * np.array(to_rgb(curve.colour)))).all(axis=-1)
        assert seen.sum() > 50, curve.label
    assert len({curve.mark for curve in panel.curves}) == 4


def test_panels_share_the_width_of_the_figure(tmp_path):
    """A panel of one curve, which has no marks, beside one of several."""
    runs = [*flat_runs(tmp_path / "several"), read_run(synthetic_run(tmp_path / "one", "pusher", snapshots=0))]
    figure = draw_curves(evaluation_panels(runs))
    FigureCanvasAgg(figure).draw()
    widths = [axes.get_position().width for axes in figure.axes]
    assert len(widths) == 2
    assert min(widths) > 0.35
