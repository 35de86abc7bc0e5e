"""`higl watch`: where it serves, and how it stops."""

import os
import signal
import subprocess
import sys
import time

import pytest

from higl.cli import main


def test_watch_prints_its_address_and_stops_quietly(runs_folder):
    command = [sys.executable, "-m", "higl", "watch", str(runs_folder / "higl-0"), "--port", "0"]
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--every", "0"], "--every must be more than 0"),
        (["--every", "nan"], "--every must be more than 0"),
        (["--port", "99999"], "--port 99999: expected a number from 0 to 65535"),
    ],
)
def test_mistakes(runs_folder, words, message, capsys):
    assert main(["watch", str(runs_folder), *words]) == 2
    assert capsys.readouterr().err == f"higl watch: {message}\n"
