"""The processor of this machine, as Linux describes it."""

from __future__ import annotations

from pathlib import Path

# Features with which a processor multiplies bfloat16 numbers faster than float32.
_BFLOAT16 = {"avx512_bf16", "amx_bf16"}


def cpu_info(name: str) -> str | None:
    """Return an entry of the first core in /proc/cpuinfo; None if there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def has_fast_bfloat16() -> bool:
    """Return whether the processor multiplies bfloat16 numbers faster than float32."""
    return not _BFLOAT16.isdisjoint((cpu_info("flags") or "").split())
