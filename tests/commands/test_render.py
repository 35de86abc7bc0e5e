"""`higl render`: a video, which the report then shows."""

import pytest
from support.policies import give_policy
from support.synthetic import synthetic_run

from higl.cli import main


def test_a_video_and_a_report_with_it(tmp_path, capsys):
    folder = synthetic_run(tmp_path / "run", task="reacher", snapshots=1)
    give_policy(folder)
    assert main(["render", str(folder), "--flat", "--size", "64", "--best", "--tries", "2"]) == 0
    assert "1 episode, the best of 2" in capsys.readouterr().out
    assert main(["report", str(folder), "-o", str(tmp_path / "report.html")]) == 0
    assert "data:video/mp4;base64," in (tmp_path / "report.html").read_text()


def test_a_policy_that_comes_with_the_package_has_no_notices(tmp_path, capsys):
    """It has neither metrics nor a checkpoint to resume from."""
    words = ["pusher", "--pretrained", "--flat", "--size", "64", "-o", str(tmp_path / "video.mp4")]
    assert main(["render", *words]) == 0
    captured = capsys.readouterr()
    assert "1 episode" in captured.out
    assert captured.err == ""


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["RUNS/higl-0"], 1, "no policy yet"),
        (["RUNS/higl-0", "-o", "video.avi"], 2, "must end in .mp4"),
        (["RUNS/higl-0", "--episodes", "0"], 2, "--episodes"),
        (["no-such-task", "--pretrained"], 2, "no trained policy for 'no-such-task' comes with higl"),
        ([], 2, "which run? give its folder"),
    ],
)
def test_mistakes(runs_folder, words, code, message, capsys):
    assert main(["render", *(word.replace("RUNS", str(runs_folder)) for word in words)]) == code
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("higl render: ")
    assert message in error
