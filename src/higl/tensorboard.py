"""TensorBoard events, if the extra `tensorboard` is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from higl.runlog import TENSORBOARD


class EventWriter:
    """Writes scalars to `RUN/tensorboard`; without the package, nothing."""

    def __init__(self, run: Path, from_step: int):
        self._writer: Any = None
        if importlib.util.find_spec("tensorboardX") is not None:
            package = importlib.import_module("tensorboardX")
            # Events after the checkpoint that a run continues from are hidden; it writes them again.
            self._writer = package.SummaryWriter(str(run / TENSORBOARD), purge_step=from_step + 1)

    def write(self, prefix: str, values: Mapping[str, Any], step: int) -> None:
        """Add every number."""
        if self._writer is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self._writer.add_scalar(prefix + name, value, step)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()
