"""What must be decided before NumPy and JAX are imported: cores, threads, device, the cache of compiled programs.

Imports nothing heavy, so that the command line can call it first.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from higl.errors import SettingsError

# JAX's own word for each device that a user may name.
DEVICES = {"cpu": "cpu", "gpu": "cuda"}


def prepare_process(cores: Sequence[int] = (), device: str | None = None) -> None:
    """Pin this process and its threads, and set what NumPy and JAX read when they are imported.

    A variable that the user has set already wins.

    Raises:
        SettingsError: there is no such core.
    """
    if cores:
        pin_cores(cores)
    # Acting multiplies tiny matrices with vectors: handing those to other threads costs more than the product.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if device is not None:
        os.environ["JAX_PLATFORMS"] = DEVICES[device]
    cache = compilation_cache()
    if cache is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def pin_cores(cores: Sequence[int]) -> None:
    """Run on these cores only. XLA sizes its thread pool by them."""
    if not hasattr(os, "sched_setaffinity"):
        raise SettingsError("--cores: this system does not let a process choose its cores")
    try:
        os.sched_setaffinity(0, cores)
    except (OSError, ValueError):
        allowed = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
        raise SettingsError(f"--cores: no core {' '.join(map(str, cores))}; this process may use {allowed}") from None


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compilation_cache() -> Path | None:
    """Return a folder for compiled programs, one for each jaxlib version and kind of processor; None: no such place."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "higl"
        folder = base / f"jax-{importlib.metadata.version('jaxlib')}-{_processor_kind()}"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError, importlib.metadata.PackageNotFoundError):
        return None
    return folder if os.access(folder, os.W_OK) else None


def _processor_kind() -> str:
    """Name the processor by its features: a program compiled for others may not run on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        features = platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(features.encode()).hexdigest()[:8]}"
