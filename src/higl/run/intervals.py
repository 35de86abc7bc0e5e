"""How sure one can be of a success rate. Imports nothing heavy."""

from __future__ import annotations

from math import sqrt

# Two-sided 95% quantile of the normal distribution.
_Z = 1.959964


def wilson_interval(successes: int, count: int) -> tuple[float, float]:
    """Return the 95% interval of a rate (Wilson's: sensible for few episodes and for rates near 0 and 1)."""
    rate, share = successes / count, _Z * _Z / count
    centre = (rate + share / 2) / (1 + share)
    half = _Z / (1 + share) * sqrt(rate * (1 - rate) / count + share / (4 * count))
    return max(0.0, centre - half), min(1.0, centre + half)
