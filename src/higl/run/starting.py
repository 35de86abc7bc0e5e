"""Starting a run with all that another one has learned: which settings must agree. Imports neither NumPy nor JAX."""

from __future__ import annotations

from pathlib import Path

from higl.errors import SettingsError
from higl.run.files import CHECKPOINTS
from higl.run.reading import read_config
from higl.settings.config import Config
from higl.settings.flat import differences, differing

# What weights, buffers and map were made with.
_KEPT = (
    "task", "algo", "observe_achieved", "goal_unit", "time_limit", "hidden", "buffer_size", "low.normalise",
    "low.hidden_entries", "low.angles", "low.action_share", "low.discount", "high.period", "high.subgoals",
    "high.relabel", "adjacency.cell", "landmarks.graph", "landmarks.coverage", "landmarks.novelty",
    "evaluation.average",
)  # fmt: skip


def check_start(config: Config, origin: Path) -> None:
    """Reject settings with which a run cannot start from what another has learned.

    Raises:
        RunFolderError: that is no run, or it is damaged.
        SettingsError: settings that must agree differ, or the run has no checkpoint.
    """
    earlier = read_config(origin)
    changed = [name for name in differing(earlier, config) if name in _KEPT]
    if changed:
        told = ", ".join(differences(earlier, config, changed)[:3])
        raise SettingsError(f"a run from {origin} must keep what its weights, buffers and map were made with ({told})")
    if not any((origin / CHECKPOINTS).glob("[0-9]*")):
        raise SettingsError(f"{origin} has no checkpoint to start from")
