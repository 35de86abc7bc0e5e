"""Formatting shared by the terminal, figures and pages: numbers, steps, durations, plurals, suggestions."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable


def steps_text(steps: float) -> str:
    """Return a number of steps for people: 950, 60k, 1.25M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(steps) >= size:
            return f"{steps / size:.3g}{letter}"
    return f"{steps:.0f}"


def progress_text(done: int, planned: int) -> str:
    """Return how many of the planned steps are done: '840 of 2.1k'; all of them, or more, are '2.16k'.

    A run ends with an episode, so it may do a few steps more than planned.
    """
    return steps_text(done) if done >= planned else f"{steps_text(done)} of {steps_text(planned)}"


def number_text(number: float) -> str:
    """Return the shortest text that stands for exactly this number: 4, 0.02, 1e-05, 0.1234567."""
    short = f"{number:g}"
    return short if isinstance(number, float) and float(short) == number else repr(number)


def counted(number: int | str, what: str) -> str:
    """Return a number with its noun in the singular or plural: '1 core', '2 cores'."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return a time for people: 42s, 3m 20s, 2h 05m."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02d}m"
    return f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def value_text(value: object) -> str:
    """Return the value of a setting for people: 0.02, sparse, [300, 300]."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    return number_text(value) if isinstance(value, float) else str(value)


def tick_text(number: float) -> str:
    """Return the short label of a tick on an axis: 0.25, 1.5e-4."""
    if number == 0 or abs(number) >= 1e-2:
        return f"{number:.4g}"
    mantissa, exponent = f"{number:.1e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


SIMILAR = 0.65
"""Similarity (`difflib`) from which on a name is suggested. At 0.5, `Foo-v0` would suggest `Acrobot-v1`."""


def did_you_mean(name: str, known: Iterable[str], flag: str = "") -> str:
    """Return '; did you mean ...?' with the settings that end in this name, else the nearest name, or nothing."""
    known = list(known)
    found = [other for other in known if _ends_in(other, name)] or difflib.get_close_matches(
        name, known, n=1, cutoff=SIMILAR
    )
    return f"; did you mean {' or '.join(f'{flag}{other}' for other in found)}?" if found else ""


def _ends_in(setting: str, name: str) -> bool:
    """Return whether a dotted name ends in a shorter one: `coverage`, `learning_rate`, `low.learning_rate`."""
    group, dot, last = setting.rpartition(".")
    wanted_group, _, wanted = name.rpartition(".")
    return (
        bool(dot)
        and wanted_group in ("", group)
        and f"_{last}".replace("-", "_").endswith(f"_{wanted}".replace("-", "_"))
    )


OGBENCH = "ogbench:"
"""Prefix of OGBench's mazes, which is not a module."""


def module_in(name: str) -> str:
    """Return the module in a name `module:Id`; empty without one."""
    module, colon, _ = name.rpartition(":")
    return "" if name.startswith(OGBENCH) else module or colon


def first_line(error: Exception) -> str:
    """Return the first line of an exception's message."""
    return str(error).strip().partition("\n")[0]


def timestamp() -> str:
    """Return the time in UTC, to the second: 2026-01-31T08:00:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
