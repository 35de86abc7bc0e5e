"""The process of one run: it is `python -m higl`, waits for its folder, and ends with its parent."""

import fcntl
import os
import subprocess
import sys
import time

from support.sweeps import wait_until

from higl import __version__
from higl.run.files import LOCK
from higl.sweep.launch import WORKER
from higl.sweep.worker import wait_for_folder


def test_worker_runs_the_command_line(tmp_path):
    command = [sys.executable, *WORKER, str(os.getpid()), str(tmp_path), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert __version__ in done.stdout
    done = subprocess.run([*command[:-1], "tarin"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean train?" in done.stderr


def test_worker_imports_the_users_module_but_no_other_file_of_the_working_directory(tmp_path):
    """As the script `higl` does."""
    (tmp_path / "mine.py").write_text("import helper")
    (tmp_path / "helper.py").write_text("print('imported', flush=True)")
    (tmp_path / "gymnasium.py").write_text("raise SystemExit('a file took the place of a package')")
    command = [sys.executable, *WORKER, str(os.getpid()), "run", "train", "mine:No-v0", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "imported\n", done.stderr
    assert "unknown task 'mine:No-v0'" in done.stderr
    assert done.returncode == 2


def test_worker_waits_for_its_folder(tmp_path):
    with open(tmp_path / LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        begin = time.monotonic()
        wait_for_folder(tmp_path, seconds=0.6)
        assert time.monotonic() - begin >= 0.6
    begin = time.monotonic()
    wait_for_folder(tmp_path, seconds=60.0)
    assert time.monotonic() - begin < 1.0


def test_worker_ends_with_its_parent(tmp_path):
    """The shell that starts the worker ends at once; the worker would wait for the locked folder."""
    with open(tmp_path / LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        script = f"{sys.executable} {' '.join(WORKER)} $$ {tmp_path} --version > {tmp_path}/output & echo $!"
        shell = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        wait_until(lambda: not is_alive(int(shell.stdout)), 60.0)
    assert (tmp_path / "output").read_text() == ""


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat") as file:  # an orphan that nobody has waited for yet is a zombie
        return file.read().rpartition(")")[2].split()[0] != "Z"
