"""What matters of derived settings, in a few lines."""

from __future__ import annotations

from higl.settings.config import Config
from higl.text import value_text


def environment_summary(config: Config) -> str:
    """Return what was derived from an environment: how subgoals look, what the low level sees, and how strong it is."""
    high, hidden = config.high, config.low.hidden_entries
    kind = "offsets" if high.subgoals == "relative" else "points"
    added = "the achieved goal and the observation" if config.observe_achieved else "the observation"
    seen = f"{added} without entries {value_text(hidden)}" if hidden else f"all of {added}"
    share = config.low.action_share
    restrained = (
        [f"  the body may fall over: it uses {value_text(share)} of the range of each action"] if share < 1 else []
    )
    return "\n".join(
        [
            f"{config.task}: settings derived from the environment; --verbose (in Python: verbose=2) prints them all "
            "with their reasons, and a run folder has them in config.toml.",
            f"  the goal space is measured in units of {value_text(config.goal_unit)}",
            f"  subgoals: {kind} of up to {value_text(high.subgoal_range)}, a new one every {high.period} steps",
            f"  the low level sees {seen}",
            *restrained,
        ]
    )


def schedule_summary(config: Config) -> str:
    """Return what was derived from the number of steps."""
    if config.walks_map:
        every = config.evaluation.every
        return f"  {config.steps:,} steps: random subgoals until the low level moves, evaluations every {every:,}"
    random = f"random subgoals until step {config.high.random_steps:,}, " if config.high.random_steps else ""
    planning = f"planning from step {config.landmarks.start:,}, " if config.uses_landmarks else ""
    return f"  schedule for {config.steps:,} steps: {random}{planning}evaluations every {config.evaluation.every:,}"
