"""Published results (`published.toml`), shown beside ours."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from higl.run.naming import algorithm_title
from higl.text import steps_text

PUBLISHED = Path(__file__).with_name("published.toml")


@dataclass(frozen=True)
class PublishedValue:
    """The success rate after `steps` environment steps, shown beside `algo`; `variant` as in the names of results."""

    task: str
    reward: str
    algo: str
    steps: int
    success: float
    source: str
    variant: str = ""

    @property
    def text(self) -> str:
        """Algorithm, success and steps: 'HIGL 65.1% at 1M'."""
        return f"{algorithm_title(self.algo)} {100 * self.success:g}% at {steps_text(self.steps)}"


@cache
def _values() -> tuple[PublishedValue, ...]:
    return tuple(PublishedValue(**value) for value in tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["value"])


def published(task: str, reward: str, algo: str, variant: str = "") -> list[PublishedValue]:
    """Return the published values of a task, an algorithm and a variant."""
    wanted = (task, reward, algo, variant)
    return [value for value in _values() if (value.task, value.reward, value.algo, value.variant) == wanted]
