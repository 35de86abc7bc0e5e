"""`higl export`: writes an ONNX file, and says what is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.toy import SPACES, random_policy, tiny_config

from higl.cli import main
from higl.pretrained import pretrained_run
from higl.run.files import POLICY
from higl.run.policy_file import save_policy


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """A policy of two networks."""
    path = tmp_path_factory.mktemp("policy") / POLICY
    save_policy(path, random_policy(tiny_config()), tiny_config(), SPACES)
    return path


def test_export_of_a_policy_file(file, tmp_path, capsys):
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    out = tmp_path / "new" / "point.onnx"
    assert main(["export", str(file), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: point, both levels, a new subgoal every 5 steps\n"
    onnx.checker.check_model(out, full_check=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "-o", "policy.bin"], "policy.bin: the name must end in .onnx"),
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


def test_a_policy_that_walks_a_map_is_refused(tmp_path, capsys):
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    out = tmp_path / "ant.onnx"
    assert main(["export", str(pretrained_run("ant-maze-u")), "-o", str(out)]) == 1
    assert "finds its way on a map" in capsys.readouterr().err
    assert not out.exists()


def test_without_the_extra_the_message_names_it(file, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert main(["export", str(file), "-o", str(tmp_path / "policy.onnx")]) == 1
    assert capsys.readouterr().err == "higl export: this needs the extra `onnx`: pip install 'higl[onnx]'\n"
