"""Setting up a process: one compilation cache, whether or not JAX is imported already; and handling signals."""

from __future__ import annotations

import os
import signal
import sys
import threading

import jax
import pytest

from higl.errors import SettingsError
from higl.run.process import compilation_cache, handling, pin_cores, use_compilation_cache

VARIABLES = (
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES",
)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Use a cache folder of this test's own, and restore the variables and JAX's settings afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = {name: getattr(jax.config, name.lower()) for name in VARIABLES}
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    yield compilation_cache()
    for name, value in before.items():
        jax.config.update(name.lower(), value)


def test_before_jax_is_imported_the_cache_is_set_by_variables(own_cache, monkeypatch):
    monkeypatch.delitem(sys.modules, "jax")
    use_compilation_cache()
    assert [os.environ[name] for name in VARIABLES] == [str(own_cache), "0.0", "-1"]


def test_once_jax_is_imported_the_cache_is_set_in_its_settings(own_cache):
    jax.config.update("jax_compilation_cache_dir", None)
    use_compilation_cache()
    assert jax.config.jax_compilation_cache_dir == str(own_cache)
    assert VARIABLES[0] not in os.environ


def test_the_users_choice_is_kept(own_cache, monkeypatch, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
    use_compilation_cache()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "mine")
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.setenv(VARIABLES[0], "mine")
    use_compilation_cache()
    assert os.environ[VARIABLES[0]] == "mine"


def test_without_a_writable_place_there_is_no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compilation_cache() is None


def test_a_core_that_does_not_exist():
    with pytest.raises(SettingsError, match="--cores: no core 100000"):
        pin_cores([100_000])


@pytest.fixture
def usual(request):
    """Set the handler of SIGUSR1, and restore it afterwards."""
    before = signal.signal(signal.SIGUSR1, request.param)
    yield request.param
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("usual", [signal.SIG_DFL], indirect=True)
def test_signals_are_handled_while_the_block_runs(usual):
    received = []
    with handling([signal.SIGUSR1], lambda number, _: received.append(number)):
        signal.raise_signal(signal.SIGUSR1)
    assert received == [signal.SIGUSR1]
    assert signal.getsignal(signal.SIGUSR1) is usual


@pytest.mark.parametrize("usual", [signal.SIG_IGN], indirect=True)
def test_a_signal_that_is_ignored_stays_ignored(usual):
    with handling([signal.SIGUSR1], lambda number, _: pytest.fail("handled")):
        signal.raise_signal(signal.SIGUSR1)


def test_another_thread_handles_no_signals():
    entered = []

    def work() -> None:
        with handling([signal.SIGUSR1], lambda number, _: None):
            entered.append(signal.getsignal(signal.SIGUSR1))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert entered == [signal.getsignal(signal.SIGUSR1)]
