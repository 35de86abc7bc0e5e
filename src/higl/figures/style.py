"""Colours and words that all figures share. The colours stay apart for colour-blind eyes (Okabe and Ito)."""

from __future__ import annotations

import colorsys

ALGORITHM_COLOURS = {"higl": "#0072B2", "hrac": "#D55E00", "hiro": "#009E73"}
OTHER_COLOUR = "#7A5195"
DASHES = ((), (6, 2), (2, 2), (8, 2, 2, 2))
"""Dash patterns of an algorithm's variants, in points."""

VISITED, COVERAGE, NOVELTY = "#9AA3AD", "#0072B2", "#D6301D"
STATE, GOAL, SUBGOAL, PSEUDO, PATH, EDGE = "#111111", "#009E73", "#B8860B", "#7A5195", "#111111", "#8894A0"
WALL, FLOOR = "#4A5463", "#F6F7F9"

STAGE_COLOURS = {
    "low": "#0072B2",
    "high": "#D55E00",
    "novelty": "#CC79A7",
    "adjacency": "#009E73",
    "collect": "#E0A800",
    "remember": "#8A8F98",
}
OTHER_STAGE = "#C9CDD3"


def _parts(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return red, green, blue


def _shifted(colour: str, shift: float) -> str:
    """Return a colour lighter (or darker) by a share of the way from black to white."""
    hue, light, saturation = colorsys.rgb_to_hls(*_parts(colour))
    changed = colorsys.hls_to_rgb(hue, min(max(light + shift, 0.12), 0.8), saturation)
    return "#" + "".join(f"{round(255 * part):02X}" for part in changed)


def lighter(colour: str) -> str:
    """Return a colour's twin for dark backgrounds."""
    return _shifted(colour, 0.2)


def variant_colour(algo: str, variant: int) -> str:
    """Return the colour of a curve: one hue for each algorithm, its variants lighter and darker in turn."""
    return _shifted(ALGORITHM_COLOURS.get(algo, OTHER_COLOUR), (0.0, 0.22, -0.12, 0.34)[variant % 4])


def dashes(variant: int) -> tuple[int, ...]:
    """Return the dash pattern of a variant's line; empty for a solid line."""
    return DASHES[variant % len(DASHES)]
