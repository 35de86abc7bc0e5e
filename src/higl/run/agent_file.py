"""A file with all that an agent has learned and remembers: networks, optimisers, buffers, counters. Free of code."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import msgspec

from higl.algo.learner import Learner
from higl.errors import PolicyFileError, SettingsError
from higl.run.checkpoint import Arrays, Counters, learner_arrays
from higl.run.policy_file import FORMAT, read_arrays, write_arrays
from higl.run.reading import BEFORE_THE_SETTING
from higl.settings.config import Config
from higl.settings.layers import apply, flat

KIND = "agent"


def save_agent(path: Path, learner: Learner, config: Config) -> None:
    """Write a learner and its settings."""
    counters = Counters(learner.steps, learner.episodes)
    metadata = {
        "format": FORMAT,
        "kind": KIND,
        "config": msgspec.json.encode(config).decode(),
        "counters": json.dumps(asdict(counters)),
    }
    write_arrays(path, metadata, learner_arrays(learner))


def load_agent(path: Path) -> tuple[Config, Arrays, Counters] | None:
    """Return the settings, arrays and counters of such a file; None if it holds a policy alone.

    Raises:
        PolicyFileError: the file is missing, damaged or of another format.
    """
    metadata, arrays = read_arrays(path)
    if metadata.get("kind") != KIND:
        return None
    try:  # of an earlier version too, as it learned
        config = apply(Config(), BEFORE_THE_SETTING | flat(json.loads(metadata["config"])))
    except SettingsError as error:
        raise PolicyFileError(f"{path}: {error}") from None
    return config, arrays, msgspec.json.decode(metadata["counters"], type=Counters)
