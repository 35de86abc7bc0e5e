"""`higl export`: writes an ONNX file, and says what is missing."""

from __future__ import annotations

import sys

import pytest

from higl.cli import main


def test_export_of_a_policy_that_comes_with_the_package(tmp_path, capsys):
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    out = tmp_path / "new" / "ant.onnx"
    assert main(["export", "ant-maze-u", "--pretrained", "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: ant-maze-u, both levels, a new subgoal every 10 steps\n"
    onnx.checker.check_model(out, full_check=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ant-maze-u", "--pretrained", "-o", "policy.bin"], "policy.bin: the name must end in .onnx"),
        (["ant-maze-w", "--pretrained"], "no trained policy for 'ant-maze-w' comes with higl"),
        (["nowhere"], "nowhere is neither a run folder nor a policy file"),
    ],
)
def test_wrong_use_is_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["export", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_the_extra_the_message_names_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert main(["export", "ant-maze-u", "--pretrained", "-o", str(tmp_path / "policy.onnx")]) == 1
    assert capsys.readouterr().err == "higl export: this needs the extra `onnx`: pip install 'higl[onnx]'\n"
