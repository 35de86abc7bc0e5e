"""Register gymnasium-robotics, if it is installed, and patch its Fetch and hand tasks for MuJoCo 4.

Its helper functions test whether a joint's type, an integer, is a member of MuJoCo's enumeration. Since MuJoCo 3.12 an
integer no longer equals such a member, so that every Fetch task fails with a bare AssertionError. The patch gives the
helpers enumerations of integers and changes nothing else in either package.
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
    """The module `mujoco` with its enumerations as plain integers."""

    def __init__(self, module: Any):
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if name.startswith("mjt") and hasattr(value, "__members__"):
            value = types.SimpleNamespace(**{key: int(member) for key, member in value.__members__.items()})
        setattr(self, name, value)  # cache it
        return value


def register_robotics() -> bool:
    """Register the ids of gymnasium-robotics with Gymnasium; return whether it is installed."""
    if importlib.util.find_spec("gymnasium_robotics") is None:
        return False
    with contextlib.redirect_stderr(io.StringIO()):  # it prints announcements on every import
        gymnasium.register_envs(importlib.import_module("gymnasium_robotics"))
    helpers: Any = importlib.import_module("gymnasium_robotics.utils.mujoco_utils")
    if not isinstance(helpers.mujoco, _IntegerEnumerations):
        helpers.mujoco = _IntegerEnumerations(helpers.mujoco)
    return True
