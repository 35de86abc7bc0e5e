"""Setting up a process before NumPy and JAX are imported: cores, threads, device, cache of compiled programs; signals.

Imports nothing heavy, so that the command line can call it first.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from higl.errors import SettingsError
from higl.processor import cpu_info

# JAX's name for each device that a user may choose.
DEVICES = {"cpu": "cpu", "gpu": "cuda"}


def prepare_process(cores: Sequence[int] = (), device: str | None = None) -> None:
    """Pin this process and its threads, and set the variables that NumPy and JAX read when they are imported.

    Variables that the user has set keep their values.

    Raises:
        SettingsError: there is no such core.
    """
    if cores:
        pin_cores(cores)
    # Acting multiplies small matrices with vectors: handing those to other threads costs more than the product.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if device is not None:
        os.environ["JAX_PLATFORMS"] = DEVICES[device]
    use_compilation_cache()


def use_compilation_cache() -> None:
    """Keep compiled programs between processes, unless the user has chosen a place; JAX may be imported already."""
    cache = compilation_cache()
    if cache is None:
        return
    settings = {
        "jax_compilation_cache_dir": str(cache),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    if "jax" not in sys.modules:
        for name, value in settings.items():
            os.environ.setdefault(name.upper(), str(value))
        return
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        for name, value in settings.items():
            jax.config.update(name, value)


def check_device(device: str | None) -> None:
    """Reject a device that JAX does not find. Imports JAX.

    Raises:
        SettingsError: there is no such device, and what to install.
    """
    import jax

    try:
        jax.devices()
    except Exception as error:
        if device is None:  # not our choice
            raise
        hint = "; for an NVIDIA GPU: pip install 'jax[cuda12]'" if device == "gpu" else ""
        raise SettingsError(f"--device {device}: JAX finds none here{hint}") from error


@contextmanager
def handling(signals: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], Any]) -> Generator[None]:
    """Handle signals while the block runs, then restore the earlier handlers.

    Signals that are ignored stay so, as SIGHUP under `nohup`. Outside the main thread, Python can handle none.
    """
    if threading.current_thread() is not threading.main_thread():
        signals = ()
    handled = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
    earlier = {number: signal.signal(number, handler) for number in handled}
    try:
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)


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
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compilation_cache() -> Path | None:
    """Return a folder for compiled programs, one per jaxlib version and kind of processor; None if not writable."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "higl"
        folder = base / f"jax-{importlib.metadata.version('jaxlib')}-{_processor_kind()}"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError, importlib.metadata.PackageNotFoundError):
        return None
    return folder if os.access(folder, os.W_OK) else None


def _processor_kind() -> str:
    """Name the processor by its features: a program compiled for others may not run on it."""
    features = cpu_info("flags") or cpu_info("Features") or platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(features.encode()).hexdigest()[:8]}"
