"""Pictures of curves: what is drawn are the numbers of the panels."""

import re

import numpy as np
from support.synthetic import synthetic_run

from higl.figures.curves import draw_curves, draw_times, make_curves, save
from higl.figures.panels import evaluation_panels
from higl.run.reading import find_runs, read_run


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
