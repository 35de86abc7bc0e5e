"""The processor as /proc/cpuinfo describes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from higl import processor


@pytest.mark.parametrize(
    ("flags", "fast"),
    [("fpu avx512f avx512_bf16", True), ("fpu amx_bf16 amx_tile", True), ("fpu avx2 avx512f", False), ("", False)],
)
def test_the_flags_tell_whether_bfloat16_is_fast(monkeypatch, flags, fast):
    text = f"processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: {flags}\n"
    monkeypatch.setattr(Path, "read_text", lambda self: text)
    assert processor.has_fast_bfloat16() is fast
    assert processor.cpu_info("model name") == "Some CPU @ 2 GHz"


def test_without_such_a_file_nothing_is_known(monkeypatch):
    def missing(self: Path) -> str:
        raise FileNotFoundError(str(self))

    monkeypatch.setattr(Path, "read_text", missing)
    assert processor.cpu_info("flags") is None
    assert not processor.has_fast_bfloat16()
