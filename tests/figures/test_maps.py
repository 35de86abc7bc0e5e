"""Landmark maps: the chosen moments, the projections, and that what is drawn is in the snapshots."""

import json

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import to_hex
from support.synthetic import synthetic_run

from higl.errors import NoSnapshotsError
from higl.figures import style
from higl.figures.goal_space import edge_lines, load_snapshots, path_points
from higl.figures.maps import choose_phases, draw_landmarks, exploring_steps
from higl.run.reading import read_run
from higl.settings.config import LandmarksConfig


def scattered(axes, label):
    """Return the positions of the markers with a label."""
    found = [group for group in axes.collections if group.get_label() == label]
    return found[0].get_offsets() if found else np.zeros((0, 2))


def test_phases_are_evenly_spaced_or_given(runs_folder):
    snapshots = read_run(runs_folder / "higl-0").snapshots
    assert [s.step for s in choose_phases(snapshots, 2)] == [50_000, 100_000]
    assert [s.step for s in choose_phases(snapshots, 4, [1, 60_000, 61_000])] == [25_000, 50_000]
    assert [s.step for s in choose_phases(snapshots, 9)] == [25_000, 50_000, 75_000, 100_000]
    assert choose_phases([], 3) == []


def test_a_map_shows_what_the_snapshot_holds(runs_folder):
    run = read_run(runs_folder / "higl-0")
    (snapshot,) = load_snapshots(run.snapshots[-1:])
    axes = draw_landmarks(run, phases=1).axes[0]
    for name, label, colour in (
        ("visited", "visited states", style.VISITED),
        ("coverage", "coverage landmarks", style.COVERAGE),
        ("novelty", "novelty landmarks", style.NOVELTY),
    ):
        np.testing.assert_allclose(scattered(axes, label), snapshot[name], rtol=1e-6)
        group = next(group for group in axes.collections if group.get_label() == label)
        assert to_hex(group.get_facecolor()[0]).upper() == colour
    np.testing.assert_allclose(scattered(axes, "goal"), [[0, 8]])
    boxes = next(group for group in axes.collections if isinstance(group, PatchCollection))
    assert len(boxes.get_paths()) == 18
    assert axes.get_title() == f"100k steps, success {snapshot['eval_success'].mean():.0%}"
    assert not any(isinstance(group, LineCollection) and len(group.get_segments()) for group in axes.collections)


def test_a_run_without_a_goal_is_shown_as_it_explores(tmp_path):
    """At the moments of equal parts of what was visited, with names that fit."""
    folder = synthetic_run(tmp_path / "run", settings={"goal": "none", "landmarks": LandmarksConfig(graph="walked")})
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    rows = [row | {"explored_share": min(0.8, row["step"] / 62_500)} for row in rows]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = read_run(folder)
    assert exploring_steps(run, 2) == [25_000, 50_000]
    figure = draw_landmarks(run, phases=2)
    assert [axes.get_title().split(", suc")[0] for axes in figure.axes] == [
        "25k steps, 40% visited",
        "50k steps, 80% visited",
    ]
    (snapshot,) = load_snapshots([each for each in run.snapshots if each.step == 50_000])
    np.testing.assert_allclose(scattered(figure.axes[1], "frontier"), snapshot["novelty"], rtol=1e-6)
    assert len(scattered(figure.axes[1], "test goal")) == 1
    without = [{name: value for name, value in row.items() if name != "explored_share"} for row in rows]
    without = [row | {"explored_cells": row["step"] / 1000} for row in without]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in without))
    assert exploring_steps(read_run(folder), 2) == [50_000, 100_000], "where the layout is unknown"
    (folder / "metrics.jsonl").write_text("")
    assert exploring_steps(read_run(folder), 2) == []


def test_the_graph_shows_edges_path_and_plan(runs_folder):
    run = read_run(runs_folder / "higl-0")
    (snapshot,) = load_snapshots(run.snapshots[-1:])
    axes = draw_landmarks(run, phases=1, graph=True).axes[0]
    lines = next(group for group in axes.collections if isinstance(group, LineCollection))
    assert len(lines.get_segments()) == len(edge_lines(snapshot)) > 20
    (path,) = [line for line in axes.get_lines() if line.get_gid() == "path"]
    np.testing.assert_allclose(np.stack(path.get_data(), axis=1), path_points(snapshot), rtol=1e-6)
    for label in ("selected landmark", "pseudo-landmark", "subgoal", "start"):
        assert len(scattered(axes, label)) == 1
    assert len(draw_landmarks(run, phases=1, graph=True).legends[0].get_texts()) == 9


def test_without_landmarks_there_are_visited_states(runs_folder):
    axes = draw_landmarks(read_run(runs_folder / "hiro-0"), phases=1, graph=True).axes[0]
    assert len(scattered(axes, "visited states")) == 600
    assert len(scattered(axes, "coverage landmarks")) == 0


def test_arms_are_shown_in_projections(runs_folder):
    figure = draw_landmarks(read_run(runs_folder / "pusher-0"), phases=2)
    assert len(figure.axes) == 6
    assert [axes.get_ylabel() for axes in figure.axes] == ["tip y", "", "tip z", "", "puck y", ""]
    limits = [axes.get_xlim() for axes in figure.axes]
    assert limits[0] == limits[1]


def test_incomplete_snapshots_are_drawn_with_what_they_have(run_folder):
    folder = run_folder / "snapshots"
    np.savez(folder / "000000000001.npz", visited=np.zeros((0, 2)))
    np.savez(folder / "000000000002.npz", unrelated=np.zeros(3))
    np.savez(folder / "000000000003.npz", visited=np.full((3, 2), np.nan), edges=np.array([[0, 99]]), path=[5])
    run = read_run(run_folder)
    figure = draw_landmarks(run, steps=[1, 2, 3], graph=True)
    assert len(figure.axes) == 2


def test_a_run_without_snapshots(run_folder):
    for path in (run_folder / "snapshots").iterdir():
        path.unlink()
    with pytest.raises(NoSnapshotsError, match="no snapshot yet"):
        draw_landmarks(read_run(run_folder))
