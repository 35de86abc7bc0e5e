"""Runs that are interrupted: signals, kill -9, files and disks that are full."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from support import tiny
from support.commands import assert_same_run, line_count, tell, wait_for
from support.tiny import higl, start

from higl.cli import main
from higl.run.folder import RunFolder
from higl.run.reading import read_facts


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(whole, tmp_path, number, code):
    run = tmp_path / "run"
    process = start("train", *tiny.flags(steps=20_000), "--out", run)
    wait_for(lambda: line_count(run) >= 3, process)

    # A second process is refused as long as this one runs.
    other = higl("resume", run, "--trust")
    assert other.returncode == 1
    assert f"is in use by process {process.pid} on" in other.stderr
    assert main(["runs", str(run)]) == 0

    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert "stopping after this stage" in err
    assert f"To continue: higl resume {run}" in err
    facts = read_facts(run)
    assert facts["status"] == "stopped"
    assert facts["saved_step"] == 20 * line_count(run)

    # The metrics so far are those of the run that was not interrupted.
    assert tiny.lines(run)[: len(tiny.lines(whole))] == tiny.lines(whole)[: line_count(run)]


def test_a_signal_right_after_continuing(whole, tmp_path, capsys, monkeypatch):
    """Before the first episode: the run says that it stops, and its status is true."""
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    start_folder = RunFolder.start

    def interrupted_start(self, *facts):
        os.kill(os.getpid(), signal.SIGINT)
        return start_folder(self, *facts)

    monkeypatch.setattr(RunFolder, "start", interrupted_start)
    code, out, err = tell(capsys, "resume", run, "--trust", "--steps", 400)
    assert code == 130
    assert f"continuing {run} at step 200" in out
    assert f"stopped by SIGINT at step 200, saved. To continue: higl resume {run} --trust" in err
    assert read_facts(run)["status"] == "stopped"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_all_processes_of_a_run(tmp_path, number, code):
    """As a terminal sends Ctrl-C, and a cluster its SIGTERM: the environments' processes get it, too."""
    run = tmp_path / "run"
    settings = tiny.flags(task=tiny.SLOW, steps=20_000, num_envs=2, evaluation__every=10_000)
    process = start("train", *settings, "--processes", "--out", run, start_new_session=True)
    wait_for(lambda: line_count(run) >= 4, process)
    time.sleep(0.5)  # while they are stepped: an episode takes two seconds
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=240)
    assert process.returncode == code, err
    facts = read_facts(run)
    assert facts["status"] == "stopped"
    assert facts["saved_step"] == 20 * line_count(run)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(3))
def test_kill_9_at_random_moments(whole, tmp_path, attempt):
    """Saves after every episode, so that many kills fall into a save. More: benchmarks/kill_resume.py."""
    run, rng = tmp_path / "run", random.Random(attempt)
    process = start("train", *tiny.flags(), "--out", run, "--checkpoint-minutes", 0)
    episode = rng.randrange(1, 9)
    wait_for(lambda: line_count(run) >= episode, process)
    time.sleep(rng.uniform(0, 0.15))
    process.kill()
    process.communicate()
    done = higl("train", *tiny.flags(), "--out", run, "--resume", "--checkpoint-minutes", 0)
    assert done.returncode == 0, done.stderr
    assert_same_run(whole, run)


def limit_file_size() -> None:
    """Let no file of this process grow over 40 kB: a state of the tiny run has more, its logs have less."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_checkpoints_that_cannot_be_written(whole, tmp_path):
    run = tmp_path / "run"
    state = max((whole / "checkpoints").iterdir()) / "state.safetensors"
    assert state.stat().st_size > 40_000
    process = start("train", *tiny.flags(), "--out", run, "--checkpoint-minutes", 0, preexec_fn=limit_file_size)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    assert re.search(r"no checkpoint at step \d+: File too large; .*, and the run continues", err)
    assert "free some disk space, then: higl resume" in err
    assert tiny.lines(run) == tiny.lines(whole)
    done = higl("resume", run, "--trust")
    assert done.returncode == 0, done.stderr
    assert_same_run(whole, run)


# In a mount namespace of its own, so that the small disk is gone with the script, however that ends.
SMALL_DISK_SCRIPT = """
set -e
mount -t tmpfs -o size=9m tmpfs "$DISK"
"$PYTHON" -m higl.cli train "$@" --out "$DISK/run" --checkpoint-minutes 0 2> "$RESULT/stderr" > /dev/null & run=$!
until [ "$(cat "$DISK/run/metrics.jsonl" 2> /dev/null | wc -l)" -ge 3 ]; do kill -0 $run; sleep 0.05; done
dd if=/dev/zero of="$DISK/filler" bs=1k 2> /dev/null || true
code=0; wait $run || code=$?
echo $code > "$RESULT/code"
rm "$DISK/filler"
"$PYTHON" -m higl.cli resume "$DISK/run" --quiet --trust
cp -r "$DISK/run" "$RESULT/run"
"""


def test_full_disk(whole, tmp_path):
    unshare = ["unshare", "--map-root-user", "--mount"]
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run([*unshare, *mount], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small disk")
    (tmp_path / "disk").mkdir()
    places = {"DISK": str(tmp_path / "disk"), "RESULT": str(tmp_path), "PYTHON": sys.executable}
    command = [*unshare, "sh", "-c", SMALL_DISK_SCRIPT, "sh", *tiny.flags()]
    done = subprocess.run(command, env=tiny.environment() | places, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "code").read_text() == "1\n"
    told = (tmp_path / "stderr").read_text()
    assert "No space left on device" in told
    assert "is intact, and the run continues" in told
    assert_same_run(whole, tmp_path / "run")
