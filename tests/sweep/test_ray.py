"""The Ray back end without a cluster: authentication, and the message if Ray is not installed."""

import os
import sys

import pytest
from support.sweeps import call_higl

from higl.cli import main
from higl.errors import RayError
from higl.sweep.ray import connect


def test_message_without_ray_names_the_extra(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    for name in ("RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"):
        monkeypatch.setenv(name, os.environ.get(name, "0"))
    with pytest.raises(RayError, match="pip install"):
        connect("local")
    assert main(["sweep", "run", "fig6", "--out", str(tmp_path), "--ray"]) == 1
    assert capsys.readouterr().err == "higl sweep: --ray needs the extra `ray`: pip install 'higl[ray]'\n"


def test_authentication_is_on_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "")  # so that it is restored after
    monkeypatch.delenv("RAY_AUTH_MODE")
    with pytest.raises(RayError):
        connect("10.0.0.1:6379")
    assert os.environ["RAY_AUTH_MODE"] == "token"
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(RayError):
        connect("10.0.0.1:6379")
    assert os.environ["RAY_AUTH_MODE"] == "disabled"


def test_without_a_token(tmp_path):
    pytest.importorskip("ray")
    environment = {"HOME": str(tmp_path), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "", "RAY_AUTH_TOKEN_PATH": ""}
    called = call_higl("sweep", "run", "fig6", "--out", str(tmp_path), "--ray", "127.0.0.1:6399", **environment)
    assert called.returncode == 1
    assert called.stderr.count("\n") == 1
    assert called.stderr.startswith("higl sweep: --ray 127.0.0.1:6399: no authentication token")
    assert "RAY_AUTH_TOKEN" in called.stderr
