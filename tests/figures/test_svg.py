"""SVG drawings of the report page."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from higl.figures.goal_space import load_snapshots, projections
from higl.figures.panels import UNMEASURED, StageTimes, evaluation_panels
from higl.figures.svg import chart, map_svg, nice_ticks, times_bar
from higl.run.reading import read_run

EVIL = """</text><script>alert("'&")</script>"""


@pytest.fixture
def panel(runs_folder):
    return evaluation_panels([read_run(runs_folder / "higl-0")])[0]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (0, 100_000, [0, 20_000, 40_000, 60_000, 80_000, 100_000]), (3, 3, [3])],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert nice_ticks(low, high) == pytest.approx(expected)


def test_a_line_goes_through_the_values_of_its_curve(panel):
    svg = ElementTree.fromstring(chart(panel, "key", wide=True))
    (line,) = svg.findall("polyline")
    places = np.array([pair.split(",") for pair in line.get("points").split()], float)
    left, right = float(svg.get("data-left")), float(svg.get("data-right"))
    (curve,) = panel.curves
    np.testing.assert_allclose(places[:, 0], left + (right - left) * curve.steps / curve.steps[-1], atol=0.06)
    share = (places[:, 1].max() - places[:, 1]) / np.ptp(places[:, 1])
    np.testing.assert_allclose(share, (curve.centre - curve.centre.min()) / np.ptp(curve.centre), atol=2e-3)


def test_curves_on_top_of_each_other_have_marks_in_turn(panel):
    assert 'class="dot"' not in chart(panel, "key", wide=True), "a curve alone needs none"
    curves = [replace(panel.curves[0], algo=algo) for algo in ("higl", "hrac", "hiro")]
    svg = ElementTree.fromstring(chart(replace(panel, curves=tuple(curves)), "key", wide=True))
    marks = [path.get("d").split() for path in svg.findall("path") if path.get("class") == "dot"]
    assert len(marks) == 3
    starts = [float(one.removeprefix("M")) for path in marks for one in path if one.startswith("M")]
    assert len(set(starts)) == len(starts) >= 12


def test_texts_are_escaped(panel, runs_folder):
    curve = replace(panel.curves[0], label=EVIL)
    drawn = chart(replace(panel, title=EVIL, quantity=EVIL, curves=(curve,)), EVIL, wide=False)
    assert ElementTree.fromstring(drawn).get("id") == EVIL
    run = read_run(runs_folder / "higl-0")
    drawn = map_svg(load_snapshots(run.snapshots), projections(run.task, 2)[0], "landmarks", EVIL)
    assert ElementTree.fromstring(drawn).get("aria-label") == EVIL
    bar = ElementTree.fromstring(times_bar(StageTimes("run", {EVIL: 1.0, UNMEASURED: 1.0}, 1, 1.0)))
    assert bar[0][0].text.startswith(EVIL)


def test_a_map_has_one_mark_for_each_landmark_of_each_moment(runs_folder):
    run = read_run(runs_folder / "higl-0")
    snapshots = load_snapshots(run.snapshots)
    drawn = map_svg(snapshots, projections(run.task, 2)[0], "landmarks", "a map")
    for kind in ("coverage", "novelty"):
        assert len(re.findall(f'class="{kind}"', drawn)) == sum(len(snapshot[kind]) for snapshot in snapshots)
    assert drawn.count('class="wall"') == len(snapshots[0]["walls"])


def test_a_path_ends_where_the_goal_is_reached():
    path = np.stack([np.linspace(0, 8, 9), np.zeros(9)], axis=1)
    snapshot = {"eval_paths": path[None], "eval_goals": np.array([[4.0, 0.0]]), "radius": np.array(1.0)}
    shown = projections("task", 2)[0]
    points = {}
    for reached in (True, False):
        drawn = map_svg([snapshot | {"eval_success": np.array([reached])}], shown, "paths", "a map")
        (line,) = ElementTree.fromstring(drawn).iter("polyline")
        points[line.get("class")] = len(line.get("points").split())
    assert points == {"way reached": 4, "way missed": 9}
