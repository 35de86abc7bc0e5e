"""A file with the complete state of an agent: networks, optimisers, buffers, counters. It cannot execute code."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import msgspec

from higl.algo.learner import Learner
from higl.run.checkpoint import Arrays, Counters, learner_arrays
from higl.run.policy_file import FORMAT, read_arrays, stored_config, write_arrays
from higl.settings.config import Config

KIND = "agent"


def save_agent(path: Path, learner: Learner, config: Config) -> None:
    """Write a learner and its settings."""
    counters = Counters(learner.steps, learner.episodes, before=learner.before)
    metadata = {
        "format": FORMAT,
        "kind": KIND,
        "config": json.dumps(asdict(config)),
        "counters": json.dumps(asdict(counters)),
    }
    write_arrays(path, metadata, learner_arrays(learner))


def load_agent(path: Path) -> tuple[Config, Arrays, Counters] | None:
    """Return the settings, arrays and counters of such a file; None if it holds only a policy.

    Raises:
        PolicyFileError: the file is missing, damaged, or has another format.
    """
    metadata, arrays = read_arrays(path)
    if metadata.get("kind") != KIND:
        return None
    return stored_config(path, metadata), arrays, msgspec.json.decode(metadata["counters"], type=Counters)
