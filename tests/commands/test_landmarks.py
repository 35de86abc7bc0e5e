"""`higl landmarks`: which snapshots it draws, with and without the graph."""

import re
from pathlib import Path

import pytest

from higl.cli import main

GRAPH = {"shortest path", "selected landmark", "pseudo-landmark", "subgoal"}


def texts(run: Path, out: Path, *words: str) -> list[str]:
    """Draw a run's maps, and return the texts in the picture."""
    assert main(["landmarks", str(run), "-o", str(out), *words]) == 0
    return re.findall(r"<text[^>]*>(.*?)</text>", out.read_text())


def steps(found: list[str]) -> list[str]:
    return [text.partition(" ")[0] for text in found if " steps" in text]


def test_phases_and_steps(runs_folder, tmp_path, capsys):
    run, out = runs_folder / "higl-0", tmp_path / "map.svg"  # with snapshots at 25k, 50k, 75k and 100k steps
    assert steps(texts(run, out)) == ["25k", "50k", "75k", "100k"]
    assert capsys.readouterr().out == f"{out}: Point Maze (sparse): HIGL, seed 0\n"
    assert steps(texts(run, out, "--phases", "2")) == ["50k", "100k"]
    assert steps(texts(run, out, "--steps", "30000", "7e4")) == ["25k", "75k"]


def test_graph(runs_folder, tmp_path):
    run, out = runs_folder / "higl-0", tmp_path / "map.svg"
    assert not GRAPH & set(texts(run, out, "--phases", "1"))
    assert set(texts(run, out, "--phases", "1", "--graph")) >= GRAPH


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["RUNS"], "holds 7 runs, and this takes one"),
        (["RUNS/higl-0", "--phases", "0"], "--phases must be 1 or more"),
        (["RUNS/higl-0", "RUNS/higl-1"], "unexpected argument"),
        ([], "which run? give its folder"),
    ],
)
def test_mistakes(runs_folder, words, message, capsys):
    assert main(["landmarks", *(word.replace("RUNS", str(runs_folder)) for word in words)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("higl landmarks: ")
    assert message in error
    assert error.count("\n") == 1
