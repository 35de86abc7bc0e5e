"""Hierarchical reinforcement learning guided by landmarks.

import higl

agent = higl.HIGL("higl/AntMazeU-v0", reward="sparse", seed=0)
agent.learn(1_000_000, log_dir="runs/first")
print(higl.evaluate(agent, episodes=100))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from higl.acting import load_policy
    from higl.agent import HIGL, HIRO, HRAC, evaluate
    from higl.envs.adapt import wrap_goal

__version__ = "0.1.0"

__all__ = ["HIGL", "HIRO", "HRAC", "__version__", "evaluate", "load_policy", "wrap_goal"]

# Imported when they are asked for: `higl --help` and a policy that acts do without JAX.
_LAZY = dict.fromkeys(("HIGL", "HRAC", "HIRO", "evaluate"), "higl.agent") | {
    "load_policy": "higl.acting",
    "wrap_goal": "higl.envs.adapt",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'higl' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
