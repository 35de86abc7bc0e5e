"""The files of a run folder, and writing files so that neither a crash nor a power cut leaves half of one behind."""

from __future__ import annotations

import os
from pathlib import Path

FORMAT = 2
"""Format of the run folder, in `run.json`."""

CONFIG, FACTS, METRICS, EVALUATIONS = "config.toml", "run.json", "metrics.jsonl", "eval.csv"
LOG, LOCK, POLICY, VIDEO = "log.txt", "lock", "policy.safetensors", "video.mp4"
CHECKPOINTS, SNAPSHOTS, TENSORBOARD = "checkpoints", "snapshots", "tensorboard"

CHECKPOINT_MINUTES = 5.0
"""Minutes between two checkpoints, unless others are given."""

EVALUATION_COLUMNS = ("step", "time", "episodes", "success", "return", "steps_to_success", "path_length")


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and flush it to disk."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under another name, then rename it, which replaces the old one in one step."""
    beside = path.with_name(f".{path.name}.new")
    try:
        write_durably(beside, content)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Flush a folder's list of names to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
