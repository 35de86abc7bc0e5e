"""Observations of goal environments: dictionaries of an observation, an achieved goal and a desired goal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

PARTS = ("observation", "achieved_goal", "desired_goal")


def with_achieved(observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Put the achieved goal before the observation: [..., G + O]."""
    both = [observation["achieved_goal"], observation["observation"]]
    return {**observation, "observation": np.concatenate(both, axis=-1, dtype=np.float32)}


def as_batches(observation: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the parts of an observation, or of a batch of them, as float32 batches: [N, ...].

    Raises:
        ValueError: it is not a dictionary of the three parts.
    """
    try:
        return {name: np.atleast_2d(np.array(observation[name], np.float32)) for name in PARTS}
    except (KeyError, TypeError, IndexError):
        raise ValueError(f"the observation must be a dict of {', '.join(PARTS)}") from None
