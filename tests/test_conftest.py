"""The defaults of the test suite: CPU, threads, Hypothesis profiles, no network."""

import os
import socket

import pytest
from conftest import hypothesis_profile
from hypothesis import settings


def test_jax_runs_on_the_cpu():
    import jax

    assert {device.platform for device in jax.devices()} == {"cpu"}


def test_one_thread_per_worker():
    assert os.environ["OMP_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == "1"


def test_hypothesis_has_no_deadline():
    assert settings.default.deadline is None


@pytest.mark.parametrize(("environment", "deterministic"), [({}, False), ({"CI": ""}, False), ({"CI": "true"}, True)])
def test_hypothesis_is_deterministic_in_ci(environment, deterministic):
    assert settings.get_profile(hypothesis_profile(environment)).derandomize == deterministic


def test_the_profile_of_this_environment_is_loaded():
    assert settings.get_current_profile_name() == hypothesis_profile(os.environ)


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "example.invalid"])
def test_other_machines_are_rejected(host):
    with pytest.raises(RuntimeError, match="do not use the network"):
        socket.create_connection((host, 80), timeout=1)


def test_this_machine_is_allowed():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getpeername() == server.getsockname()
