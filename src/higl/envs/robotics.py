"""gymnasium-robotics, if it is installed: its ids made known, and its Fetch and hand tasks mended for MuJoCo 4.

Its helper functions ask whether a joint's type, an integer, is among MuJoCo's enumeration. Since MuJoCo 3.12 an integer
no longer equals a member of an enumeration, so that every Fetch task ends in a bare AssertionError. The helpers are
given enumerations of integers instead; nothing else of either package is touched.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import types
from typing import Any

import gymnasium


class _IntegerEnumerations:
    """The module `mujoco`, with its enumerations as plain integers."""

    def __init__(self, module: Any):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if name.startswith("mjt") and hasattr(value, "__members__"):
            value = types.SimpleNamespace(**{key: int(member) for key, member in value.__members__.items()})
        setattr(self, name, value)  # so that it is looked up once
        return value


def register_robotics() -> bool:
    """Make the ids of gymnasium-robotics known to Gymnasium; return whether it is installed."""
    if importlib.util.find_spec("gymnasium_robotics") is None:
        return False
    with contextlib.redirect_stderr(io.StringIO()):  # it tells its news there on every import
        gymnasium.register_envs(importlib.import_module("gymnasium_robotics"))
    helpers: Any = importlib.import_module("gymnasium_robotics.utils.mujoco_utils")
    if not isinstance(helpers.mujoco, _IntegerEnumerations):
        helpers.mujoco = _IntegerEnumerations(helpers.mujoco)
    return True
