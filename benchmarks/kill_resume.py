"""Kill a run with -9 at random moments, resume it, and compare the end with that of a run that was never interrupted.

    python benchmarks/kill_resume.py --kills 30

Each round starts a new run of a small point maze that saves after every episode, kills it at a random moment (while it
starts, collects, learns, evaluates or saves), resumes it, and compares metrics, evaluations, policy and the final
checkpoint, bit for bit. Prints a line per round; exits with 1 if any differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SETTINGS = """
task = "point-maze"
steps = 3000
evaluation = { every = 1000, episodes = 1 }
hidden = [32, 32]
batch_size = 32
buffer_size = 2000
adjacency = { every = 1000, epochs = 2 }
landmarks = { start = 1000, pool = 200 }
"""


def train(run: Path) -> subprocess.Popen:
    """Start a run, or continue it; it saves after every episode."""
    settings = run.parent / "settings.toml"
    settings.write_text(SETTINGS)
    options = ["--checkpoint-minutes", "0", "--quiet", "--resume"]
    command = [sys.executable, "-m", "higl.cli", "train", "--config", settings, "--out", run, *options]
    return subprocess.Popen(command)


def metrics(run: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in row.items() if name != "time" and not name.startswith("seconds/")}
        for row in rows
    ]


def evaluations(run: Path) -> list[list[str]]:
    rows = [line.split(",") for line in (run / "eval.csv").read_text().splitlines()]
    return [row[:1] + row[2:] for row in rows]


def differences(first: Path, second: Path) -> list[str]:
    """Return what is not the same in two runs."""
    from higl.run.checkpoint import Checkpoints
    from higl.run.policy_file import read_arrays

    states = [Checkpoints(run / "checkpoints").load(print) for run in (first, second)]
    policies = [read_arrays(run / "policy.safetensors")[1] for run in (first, second)]
    found = [name for name, read in (("metrics", metrics), ("evaluations", evaluations)) if read(first) != read(second)]
    found += [f"checkpoint: {name}" for name in differing(states[0][0], states[1][0])]  # ty: ignore
    return found + [f"policy: {name}" for name in differing(*policies)]


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Return the names of the arrays that are not bit-identical in both."""
    return [
        name
        for name in sorted(first.keys() | second.keys())
        if name not in first or name not in second or first[name].tobytes() != second[name].tobytes()
    ]


def wait_for(run: Path, episodes: int, process: subprocess.Popen) -> None:
    log = run / "metrics.jsonl"
    while process.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < episodes):
        time.sleep(0.005)


def kill_once(run: Path, rng: random.Random, start_seconds: float, episode_seconds: float) -> str | None:
    """Start a run and kill it at a random moment; return where that was, or None if it was done before."""
    process = train(run)
    episode = rng.randrange(6)
    if episode == 0:
        time.sleep(rng.uniform(0, start_seconds))
    else:
        wait_for(run, episode, process)
        # Half of the kills fall right after an episode is logged, which is when it evaluates and saves.
        time.sleep(rng.uniform(0, 0.1 if rng.random() < 0.5 else episode_seconds))
    process.kill()
    return where(run) if process.wait() == -signal.SIGKILL else None


def where(run: Path) -> str:
    """Say what a kill left behind."""
    if not (run / "run.json").exists():
        return "before the run began"
    saves = sorted(place.name for place in (run / "checkpoints").glob("*")) if (run / "checkpoints").exists() else []
    whole = [int(name) for name in saves if name.isdecimal()]
    steps = [row["step"] for row in metrics(run)]
    text = f"at step {steps[-1] if steps else 0}, saved {whole[-1] if whole else 'nothing'}"
    return text + (", in the middle of a save" if any(name.startswith(".") for name in saves) else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, exact = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "reference"
        begun = time.monotonic()
        process = train(reference)
        wait_for(reference, 1, process)
        start_seconds = time.monotonic() - begun
        assert process.wait() == 0
        episode_seconds = (time.monotonic() - begun - start_seconds) / 6
        print(f"reference: {start_seconds:.1f} s to the first episode, then {episode_seconds:.2f} s each", flush=True)
        for number in range(1, options.kills + 1):
            run, place = Path(folder) / f"run{number}", None
            while place is None:
                shutil.rmtree(run, ignore_errors=True)
                place = kill_once(run, rng, start_seconds, episode_seconds)
            code = train(run).wait()
            wrong = ["exit code " + str(code)] if code else differences(reference, run)
            exact += not wrong
            print(f"{number:3d}  killed {place}: {'exact' if not wrong else ', '.join(wrong[:5])}", flush=True)
    print(f"{exact} of {options.kills} resumed exactly")
    return 0 if exact == options.kills else 1


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
