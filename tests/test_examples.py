"""The examples run as their docstrings say, with few steps, and print and write what they promise."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from higl.run.policy_file import load_policy
from higl.settings.config import Config
from higl.settings.layers import apply, read_settings

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

EVALUATION = r"success \d+% of {episodes} episodes .*return -\d+\.\d"


def run(name: str, folder: Path, *arguments: str) -> list[str]:
    """Run an example in a folder and return the lines that it prints."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=280)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def check_rollout(folder: Path) -> None:
    lines = run("rollout.py", folder)
    assert [line.split(":")[0] for line in lines] == ["higl/PointMaze-v0", "higl/AntMazeU-v0"]
    for line in lines:
        assert re.search(r"500 random steps from \[.*\] to \[.*\], goal \[0\. 8\.\], return -\d+, success: \w+$", line)


def check_own_environment(folder: Path) -> None:
    lines = run("own_environment.py", folder, "--steps", "200")
    assert any("high.subgoal_range" in line for line in lines), "the derived settings are printed"
    for when in ("before:", "after: "):
        (line,) = [line for line in lines if line.startswith(when)]
        assert re.fullmatch(f"{when} {EVALUATION.format(episodes=20)}", line)
    assert re.fullmatch(r"the boat is at \[.*\], and its goal at \[.*\]", lines[-1])


def check_five_lines(folder: Path) -> None:
    lines = run("train_in_five_lines.py", folder, "--steps", "500", "--episodes", "1")
    assert re.fullmatch(EVALUATION.format(episodes=1), lines[-1])
    _, config = load_policy(folder / "point-maze.safetensors")
    assert (config.task, config.algo, config.steps) == ("point-maze", "higl", 500)


CHECKS: dict[str, Callable[[Path], None]] = {
    "own_environment.py": check_own_environment,
    "rollout.py": check_rollout,
    "train_in_five_lines.py": check_five_lines,
}


def test_every_example_is_checked():
    assert {path.name for path in EXAMPLES.glob("*.py")} == CHECKS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_example(name, tmp_path):
    CHECKS[name](tmp_path)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_settings_files_are_valid(path):
    config = apply(Config(), read_settings(path))
    assert (config.task, config.algo, config.reward) == ("point-maze", "higl", "sparse")
