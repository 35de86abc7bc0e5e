"""Comparing arrays bit by bit."""

import numpy as np


def differing(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> list[str]:
    """Return the names of the arrays that are not bit-identical in both."""
    return [
        name
        for name in sorted(first.keys() | second.keys())
        if name not in first or name not in second or first[name].tobytes() != second[name].tobytes()
    ]
