"""Checks before a run starts: settings, environment and trained networks must fit together."""

from __future__ import annotations

import gymnasium

from higl.algo.policy import Spaces
from higl.envs.goals import reward_function
from higl.errors import SettingsError, TaskError
from higl.settings.config import Config


def check_spaces(config: Config, spaces: Spaces) -> None:
    """Reject settings that do not fit the environment.

    Raises:
        SettingsError: a setting does not fit.
    """
    if len(config.high.subgoal_range) not in (1, spaces.goal):
        raise SettingsError(f"high.subgoal_range: expected 1 or {spaces.goal} numbers for the task {config.task}")
    for name in ("hidden_entries", "angles"):
        if any(entry >= spaces.observation for entry in getattr(config.low, name)):
            raise SettingsError(f"low.{name}: the observation of {config.task} has {spaces.observation} entries")


def check_goals(config: Config, env: gymnasium.Env) -> None:
    """Reject training for goals in an environment that has none, or for goals that it cannot reward.

    Raises:
        SettingsError: it was wrapped without a goal.
        TaskError: goals would be drawn, and it computes no rewards for them.
    """
    if config.draws_goals:
        reward_function(env, config.task)
    try:
        has_goals = env.get_wrapper_attr("has_goals")
    except AttributeError:
        return
    if not has_goals and not config.explores_freely:
        raise SettingsError(
            f'{config.task} has no goals (wrap_goal without `desired`): train it without one, goal = "none"'
        )


def check_same_spaces(here: Spaces, trained_for: Spaces) -> None:
    """Reject an environment whose spaces differ from those that the agent was trained for.

    Raises:
        TaskError: the spaces differ; the message describes both.
    """
    if here != trained_for:
        raise TaskError(f"the agent expects {_in_words(trained_for)}; this environment has {_in_words(here)}")


def _in_words(spaces: Spaces) -> str:
    ends = zip(spaces.action_low, spaces.action_high, strict=True)
    ranges = ", ".join(f"{low:g} to {high:g}" for low, high in ends)
    return f"observations of {spaces.observation} numbers, goals of {spaces.goal}, and actions in {ranges}"
