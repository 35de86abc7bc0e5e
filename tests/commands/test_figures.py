"""The commands: what they write and print, and one line for what is wrong."""

import os
import signal
import subprocess
import sys
import time

import pytest
from support.policies import give_policy
from support.synthetic import synthetic_run

from higl.cli import main


@pytest.mark.parametrize("command", ["plot", "landmarks", "render", "report", "watch"])
def test_help_and_missing_arguments(command, capsys):
    assert main([command, "--help"]) == 0
    assert "RUN" in capsys.readouterr().out
    assert main([command]) == 2
    assert capsys.readouterr().err == f"higl {command}: which run? give its folder\n"


def test_plots(runs_folder, tmp_path, capsys):
    out = tmp_path / "plot.svg"
    assert main(["plot", str(runs_folder), "-o", str(out), "--show", "success", "losses", "--smooth", "10000"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{out}: 7 runs\n"
    assert (
        said.err == "notice: All runs: These numbers are synthetic: made up to test the figures, not from training.\n"
    )
    assert "smoothed over the last 10k steps" in out.read_text()
    assert main(["plot", str(runs_folder), "-o", str(tmp_path / "times.png"), "--show", "times"]) == 0
    assert (tmp_path / "times.png").is_file()


def test_landmark_maps(runs_folder, tmp_path, capsys):
    out = tmp_path / "map.png"
    assert main(["landmarks", str(runs_folder / "higl-0"), "--steps", "30000", "--graph", "-o", str(out)]) == 0
    assert out.is_file()
    assert main(["landmarks", str(runs_folder), "-o", str(out)]) == 2
    assert "holds 7 runs, and this takes one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["plot", "RUNS", "-o", "plot.gif"], 2, "must end in .png or .svg or .pdf"),
        (["plot", "RUNS", "--show", "luck"], 2, "expected one of success"),
        (["plot", "RUNS", "--show", "success", "times"], 2, "figure of its own"),
        (["plot", "RUNS", "--show", "progress", "--metrics", "no/such", "--spred", "std"], 2, "--spread"),
        (["plot", "RUNS", "--metrics", "low/progres"], 2, "none of these runs has measured it; did you mean low/prog"),
        (["plot", "nowhere"], 2, "does not exist"),
        (["landmarks", "RUNS/higl-0", "--phases", "0"], 2, "--phases must be 1 or more"),
        (["landmarks", "RUNS/higl-0", "RUNS/higl-1"], 2, "unexpected argument"),
        (["render", "RUNS/higl-0"], 1, "no policy yet"),
        (["render", "RUNS/higl-0", "-o", "video.avi"], 2, "must end in .mp4"),
        (["render", "RUNS/higl-0", "--episodes", "0"], 2, "--episodes"),
        (["report", "RUNS", "-o", "report"], 2, "must end in .html"),
        (["watch", "RUNS", "--every", "0"], 2, "--every"),
        (["watch", "RUNS", "--port", "99999"], 2, "--port 99999: expected a number from 0 to 65535"),
        (["plot", "RUNS", "--smooth", "-5"], 2, "--smooth -5: expected a number of steps"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(runs_folder, arguments, code, words, capsys):
    assert main([word.replace("RUNS", str(runs_folder)) for word in arguments]) == code
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"higl {arguments[0]}: ")
    assert words in last


def test_a_file_that_cannot_be_written(runs_folder, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["report", str(runs_folder / "higl-0"), "-o", str(tmp_path / "file" / "report.html")]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_a_video_and_a_report_with_it(tmp_path, capsys):
    folder = synthetic_run(tmp_path / "run", task="reacher", snapshots=1)
    give_policy(folder)
    assert main(["render", str(folder), "--flat", "--size", "64", "--best", "--tries", "2"]) == 0
    assert "1 episode, the best of 2" in capsys.readouterr().out
    assert main(["report", str(folder), "-o", str(tmp_path / "report.html")]) == 0
    assert "data:video/mp4;base64," in (tmp_path / "report.html").read_text()


def test_watch_says_where_it_is_and_ends_quietly(runs_folder):
    command = [sys.executable, "-m", "higl.cli", "watch", str(runs_folder / "higl-0"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (0, 130)
    assert "Traceback" not in errors
