"""Check before training that an environment suits the learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from higl.errors import TaskError

PARTS = ("observation", "achieved_goal", "desired_goal")

_WRAPPER = "env = higl.wrap_goal(env, goal_fn=lambda observation: observation[:2], desired=[1.0, 2.0], radius=0.5)"
_STEP = "(observation, reward, terminated, truncated, info)"


def check_env(env: gymnasium.Env, name: str) -> None:
    """Reject an environment that our policies cannot act in, by its spaces and one step.

    Raises:
        TaskError: says what is wrong and how to fix it.
    """
    _check_action_space(name, env.action_space)  # first: `wrap_goal` cannot fix actions
    _check_observation_space(name, env.observation_space)
    _check_steps(name, env)


def _check_observation_space(name: str, space: spaces.Space) -> None:
    seen = [space[part] for part in PARTS if part in space.spaces] if isinstance(space, spaces.Dict) else [space]
    for image in filter(_is_image, seen):
        raise TaskError(
            f"task {name!r}: higl learns from vectors, not from images ({_short(image)}); use the environment's states "
            "if it offers them, or turn each image into a vector of features (gymnasium.wrappers.TransformObservation)"
        )
    if not isinstance(space, spaces.Dict) or not set(PARTS) & set(space):
        raise TaskError(
            f"task {name!r} is not goal-conditioned: its observation is {_short(space)} and must be a Dict of "
            f"{', '.join(PARTS)}. Wrap it, naming the goal's numbers, the goal and its radius: {_WRAPPER}. Pass the "
            "result to higl.HIGL; for `higl train`, register a function that returns it under your own id "
            "(docs/own-environment.md)"
        )
    missing = [part for part in PARTS if part not in space.spaces]
    if missing:
        raise TaskError(
            f"task {name!r}: the observation has no {' and no '.join(map(repr, missing))}; it must be a Dict of "
            f"{', '.join(PARTS)}, but has {', '.join(space.spaces)}"
        )
    for part in PARTS:
        box = space[part]
        if not isinstance(box, spaces.Box) or len(box.shape) != 1 or box.shape[0] == 0:
            raise TaskError(f"task {name!r}: {part} must be a vector (a Box of one dimension), not {_short(box)}")
        if not np.issubdtype(box.dtype, np.floating):
            raise TaskError(f"task {name!r}: {part} must hold floating-point numbers, not {box.dtype}")
    shapes = [space[part].shape for part in PARTS[1:]]
    if shapes[0] != shapes[1]:
        raise TaskError(f"task {name!r}: achieved_goal and desired_goal differ in shape, {shapes[0]} and {shapes[1]}")


def _is_image(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Box) and (
        len(space.shape) == 3 or (len(space.shape) == 2 and space.dtype == np.uint8)
    )


def _check_action_space(name: str, space: spaces.Space) -> None:
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)):
        raise TaskError(
            f"task {name!r}: actions must be continuous (a Box), not discrete ({_short(space)}); if they have an "
            "order, give the environment a Box and round it in a gymnasium.ActionWrapper; otherwise use a method for "
            "discrete actions, such as DQN with hindsight replay (Stable-Baselines3)"
        )
    if not isinstance(space, spaces.Box) or len(space.shape) != 1 or space.shape[0] == 0:
        raise TaskError(f"task {name!r}: actions must be a vector (a Box of one dimension), not {_short(space)}")
    if not np.issubdtype(space.dtype, np.floating):
        raise TaskError(f"task {name!r}: actions must be floating-point numbers, not {space.dtype}")
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise TaskError(
            f"task {name!r}: the range of the actions must be finite, not {_short(space)}; declare "
            "a finite action space, for example with gymnasium.wrappers.TransformAction"
        )
    if not (space.low < space.high).all():
        raise TaskError(f"task {name!r}: an action has an empty range ({_short(space)})")


def _check_steps(name: str, env: gymnasium.Env) -> None:
    """Reset and step the environment once, and compare the results with the declared spaces."""
    reset: Any = _called(name, "reset(seed=0)", lambda: env.reset(seed=0))
    if not isinstance(reset, tuple) or len(reset) != 2:
        raise TaskError(f"task {name!r}: reset must return (observation, info)")
    _check_observation(name, env, reset[0], "reset")
    low, high = _bounds(env)
    middle = ((low + high) / 2).astype(env.action_space.dtype)
    step: Any = _called(name, "step", lambda: env.step(middle))
    if not isinstance(step, tuple) or len(step) != 5:
        raise TaskError(f"task {name!r}: step must return {_STEP}")
    observation, reward, _, _, info = step
    _check_observation(name, env, observation, "step")
    if np.ndim(reward) != 0 or not np.isfinite(np.float64(reward)):
        raise TaskError(f"task {name!r}: the reward must be a finite number, but step returned {reward!r}")
    if not isinstance(info, dict):
        raise TaskError(f"task {name!r}: the info must be a dict, but step returned {type(info).__name__}")


def _called(name: str, what: str, call: Callable[[], Any]) -> Any:
    """Call a method of the environment, and report an exception as a TaskError."""
    try:
        return call()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, ValueError) and "to unpack" in str(error):  # from a wrapper, such as TimeLimit
            reason += f" (reset must return (observation, info), and step {_STEP})"
        raise TaskError(f"task {name!r}: {what} raised {reason}") from error


def _check_observation(name: str, env: gymnasium.Env, observation: Any, where: str) -> None:
    declared: Any = env.observation_space
    if not isinstance(observation, dict):
        raise TaskError(f"task {name!r}: {where} returned {type(observation).__name__} instead of a dict")
    for part in PARTS:
        if part not in observation:
            raise TaskError(f"task {name!r}: the observation from {where} has no {part!r}")
        try:
            value = np.asarray(observation[part], np.float64)
        except (TypeError, ValueError):
            raise TaskError(f"task {name!r}: {where} returned {_a(part)} that is not a vector of numbers") from None
        shape = declared[part].shape
        if value.shape != shape:
            raise TaskError(f"task {name!r}: {where} returned {_a(part)} of shape {value.shape} instead of {shape}")
        if not np.isfinite(value).all():
            raise TaskError(f"task {name!r}: {where} returned NaN or infinity in {part}")


def _a(part: str) -> str:
    return f"{'a' if part == 'desired_goal' else 'an'} {part}"


def _bounds(env: gymnasium.Env) -> tuple[np.ndarray, np.ndarray]:
    action: Any = env.action_space
    return action.low.astype(np.float64), action.high.astype(np.float64)


def _short(space: spaces.Space) -> str:
    """Return a space as text of at most 100 characters."""
    text = str(space)
    return text if len(text) <= 100 else f"{text[:97]}..."
