"""Colours, dash patterns and marks of all figures. Colour-blind readers can tell the colours apart (Okabe and Ito)."""

from __future__ import annotations

import colorsys
import math

_ALGORITHM_COLOURS = {"higl": "#0072B2", "hrac": "#D55E00", "hiro": "#009E73"}
_OTHER_ALGORITHM = "#7A5195"
# Hues for three or more variants of one algorithm in a figure that compares little else; none is HRAC's.
_HUES = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Dash patterns of an algorithm's variants, in points.
_DASHES = ((), (6, 2), (2, 2), (8, 2, 2, 2))


def _polygon(corners: int, turn: float) -> tuple[tuple[float, float], ...]:
    angles = (math.tau * corner / corners + math.radians(turn) for corner in range(corners))
    return tuple((math.cos(angle), math.sin(angle)) for angle in angles)


# Shapes of marks, y upward: circle, square, triangle up, diamond, triangles down, left and right, pentagon.
_MARKS = tuple(_polygon(*shape) for shape in ((24, 0), (4, 45), (3, 90), (4, 0), (3, 270), (3, 180), (3, 0), (5, 270)))

VISITED, COVERAGE, NOVELTY = "#9AA3AD", "#0072B2", "#D6301D"
STATE, GOAL, SUBGOAL, PSEUDO, PATH, EDGE = "#111111", "#009E73", "#B8860B", "#7A5195", "#111111", "#8894A0"
WALL, FLOOR = "#4A5463", "#F6F7F9"
EMPTY = "#F1F2F4"
"""Background of axes without data."""

_STAGE_COLOURS = {
    "low": "#0072B2",
    "high": "#D55E00",
    "novelty": "#CC79A7",
    "adjacency": "#009E73",
    "collect": "#E0A800",
    "remember": "#8A8F98",
}
_OTHER_STAGE = "#C9CDD3"


def rgb(colour: str) -> tuple[float, float, float]:
    """Return red, green and blue of '#RRGGBB', from 0 to 1."""
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue


def _shifted(colour: str, shift: float) -> str:
    """Return a colour with its lightness (0 black, 1 white) changed by `shift`."""
    hue, light, saturation = colorsys.rgb_to_hls(*rgb(colour))
    changed = colorsys.hls_to_rgb(hue, min(max(light + shift, 0.12), 0.8), saturation)
    return "#" + "".join(f"{round(255 * part):02X}" for part in changed)


def lighter(colour: str) -> str:
    """Return a lighter version of a colour, for dark backgrounds."""
    return _shifted(colour, 0.2)


def variant_colour(algo: str, variant: int) -> str:
    """Return the colour of a curve: one hue for each algorithm, a different lightness for each variant."""
    return _shifted(_ALGORITHM_COLOURS.get(algo, _OTHER_ALGORITHM), (0.0, 0.22, -0.12, 0.34)[variant % 4])


def variant_hue(variant: int) -> str:
    """Return the colour of a curve in a figure about the variants of one algorithm: another hue for each."""
    return _HUES[variant % len(_HUES)]


def mark_shape(algo: str, variant: int) -> tuple[tuple[float, float], ...]:
    """Return the corners of a curve's marks, in a circle of radius 1; another shape for each of eight variants."""
    first = list(_ALGORITHM_COLOURS).index(algo) if algo in _ALGORITHM_COLOURS else len(_ALGORITHM_COLOURS)
    return _MARKS[(first + 3 * variant) % len(_MARKS)]


def stage_colour(stage: str) -> str:
    """Return the colour of a training stage; unmeasured time is grey."""
    return _STAGE_COLOURS.get(stage, _OTHER_STAGE)


def dashes(variant: int) -> tuple[int, ...]:
    """Return the dash pattern of a variant's line; empty for a solid line."""
    return _DASHES[variant % len(_DASHES)]
