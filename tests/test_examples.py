"""The examples run as their docstrings say, with few steps, and print and write what they promise."""

import json
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
    assert any("subgoals: offsets of up to" in line for line in lines), "the derived settings are summarised"
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


def cells(path: Path) -> list[str]:
    """Return the code of a notebook, cell by cell."""
    notebook = json.loads(path.read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.slow
def test_notebook(tmp_path):
    """Its code runs from top to bottom in one process, with fewer steps."""
    code = "\n".join(cells(EXAMPLES / "quickstart.ipynb")).removeprefix("%matplotlib inline\n")
    assert "learn(4_000" in code
    assert '"every": 500' in code
    program = tmp_path / "notebook.py"
    program.write_text(code.replace("learn(4_000", "learn(200").replace('"every": 500', '"every": 100'))
    result = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert re.search(r"the best evaluation was at step \d+: success \d+%", result.stdout)
    assert re.search(EVALUATION.format(episodes=20), result.stdout)
    load_policy(tmp_path / "puck" / "best.safetensors")


def test_the_notebook_shows_results_of_its_own_code():
    """It is saved as it ran: every cell in order, with figures, and without errors or paths of a machine."""
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert "error" not in [output["output_type"] for output in outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    printed = "".join("".join(output.get("text", "")) for output in outputs)
    assert "; --verbose (in Python: verbose=2) prints them all" in printed, "the summary of today's settings"
    assert "/" not in printed, "a path"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_settings_files_are_valid(path):
    config = apply(Config(), read_settings(path))
    assert (config.task, config.algo, config.reward) == ("point-maze", "higl", "sparse")
