"""The seed of every episode: a function of the run's seed and of which episode it is."""

from __future__ import annotations

import numpy as np

# Separate streams of seeds: training, evaluation during it, and measuring a trained policy.
TRAINING, EVALUATION, MEASURING = 0, 1, 2


def episode_seed(seed: int, stream: int, *place: int) -> int:
    """Return the seed of one episode, from a run's seed, the stream and the episode's place in it."""
    return int(np.random.SeedSequence([seed, stream, *place]).generate_state(1)[0])
