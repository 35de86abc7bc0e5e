"""The examples run, for a moment."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ARGUMENTS = {
    "own_environment.py": ["--steps", "200"],
    "train_in_five_lines.py": ["--steps", "500", "--episodes", "1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example_runs(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / name), *ARGUMENTS.get(name, [])]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
