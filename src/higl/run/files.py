"""The files of a run folder, and writing files so that neither a crash nor a power cut leaves half of one behind."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

FORMAT = 12
"""Format of the run folder, in `run.json`."""

CONFIG, FACTS, METRICS, EVALUATIONS = "config.toml", "run.json", "metrics.jsonl", "eval.csv"
LOG, LOCK, POLICY, VIDEO = "log.txt", "lock", "policy.safetensors", "video.mp4"
CHECKPOINTS, SNAPSHOTS, TENSORBOARD, TRACKERS = "checkpoints", "snapshots", "tensorboard", "trackers"

CHECKPOINT_MINUTES = 5.0
"""Minutes between two checkpoints, unless others are given."""

EVALUATION_COLUMNS = (
    "step", "time", "episodes", "success", "success_at_end", "return", "steps_to_success", "path_length",
)  # fmt: skip
"""Columns of `eval.csv`."""


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and flush it to disk."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under another name, then rename it, which replaces the old one in one step."""
    with replacing(path) as beside:
        write_durably(beside, content)
    flush_folder(path.parent)


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Give another name for the block to write under, and rename the file at the end; remove it if the block fails."""
    beside = unfinished(path)
    try:
        yield beside
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def unfinished(path: Path) -> Path:
    """Return the name under which a file is written. It keeps the suffix, by which ffmpeg knows the format."""
    return path.with_name(f".new-{path.name}")


def flush_folder(folder: Path) -> None:
    """Flush a folder's list of names to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
