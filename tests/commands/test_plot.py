"""`higl plot`: the file it writes, what it prints, one line for every mistake."""

import pytest
from support.synthetic import synthetic_run

from higl.cli import main


def test_curves(runs_folder, tmp_path, capsys):
    out = tmp_path / "plot.svg"
    assert main(["plot", str(runs_folder), "-o", str(out), "--show", "success", "losses", "--smooth", "10000"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{out}: 7 runs\n"
    assert printed.err == (
        "notice: All runs: These numbers are synthetic: made up to test the figures, not from training.\n"
    )
    assert "smoothed over the last 10k steps" in out.read_text()


def test_times_are_a_figure_of_their_own(runs_folder, tmp_path):
    out = tmp_path / "times.svg"
    assert main(["plot", str(runs_folder / "higl-0"), "-o", str(out), "--show", "times"]) == 0
    assert "seconds" in out.read_text()


def test_title_and_metrics(runs_folder, tmp_path):
    out = tmp_path / "plot.svg"
    words = ["plot", str(runs_folder / "higl-0"), "-o", str(out), "--metrics", "low/progress", "--title", "A title"]
    assert main(words) == 0
    assert "A title" in out.read_text()
    assert "low/progress" in out.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["RUNS", "-o", "plot.gif"], "must end in .png or .svg or .pdf"),
        (["RUNS", "--show", "luck"], "expected one of success"),
        (["RUNS", "--show", "success", "times"], "figure of its own"),
        (["RUNS", "--spred", "std"], "did you mean --spread?"),
        (["RUNS", "--metrics", "low/progres"], "none of these runs has measured it; did you mean low/progress"),
        (["RUNS", "--smooth", "-5"], "--smooth -5: expected a number of steps"),
        (["nowhere"], "does not exist"),
        ([], "which run? give its folder"),
    ],
)
def test_mistakes(runs_folder, words, message, capsys):
    assert main(["plot", *(word.replace("RUNS", str(runs_folder)) for word in words)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("higl plot: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_seed_that_occurs_twice_is_named(tmp_path, capsys):
    for name in ("a", "b"):
        synthetic_run(tmp_path / name, snapshots=0)
    assert main(["plot", str(tmp_path), "-o", str(tmp_path / "plot.svg")]) == 0
    assert "HIGL: 2 runs have seed 0 (a, b): their mean counts as one seed." in capsys.readouterr().err
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "report.html")]) == 0
    assert "HIGL: 2 runs have seed 0 (a, b)" in (tmp_path / "report.html").read_text()
