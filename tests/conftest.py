"""Defaults of the test suite: CPU only, one thread per worker, no network, deterministic in CI.

The environment variables are set before anything imports JAX or MuJoCo. The workers of xdist and all processes that
tests start inherit them. (A plugin imports NumPy before this file, so NumPy has its usual threads without workers.)
Variables that are already set are kept.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import signal
import socket
import tempfile
import threading
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["support.fixtures"]


def _cache_directory() -> Path:
    """Return the folder for compiled JAX programs, one for each jaxlib version and processor model."""
    try:
        processor = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        processor = platform.processor()
    kind = hashlib.sha256(processor.encode()).hexdigest()[:8]
    name = f"jax-{importlib.metadata.version('jaxlib')}-{platform.machine()}-{kind}"
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "higl-tests"
        (base / name).mkdir(parents=True, exist_ok=True)
        if not os.access(base / name, os.W_OK):
            raise PermissionError(base)
    except (OSError, RuntimeError):  # no home directory, or not writable
        base = Path(tempfile.mkdtemp(prefix="higl-tests-"))
    return base / name


DEFAULTS = {
    "JAX_PLATFORMS": "cpu",
    "MPLBACKEND": "Agg",
    # `make test` runs two workers, so each uses one thread; PJRT_NPROC is for XLA.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PJRT_NPROC": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    DEFAULTS |= {
        "JAX_COMPILATION_CACHE_DIR": str(_cache_directory()),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    if importlib.util.find_spec("filelock"):  # JAX locks a cache of limited size, which lets workers share it
        DEFAULTS["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(2**30)
for _name, _value in DEFAULTS.items():
    os.environ.setdefault(_name, _value)


# A shell ignores interrupts in background jobs. The processes to which tests send interrupts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("higl", derandomize=False, **_COMMON)
settings.register_profile("higl-ci", derandomize=True, **_COMMON)


def hypothesis_profile(environment: Mapping[str, str]) -> str:
    """Return the Hypothesis profile for an environment: the same examples every time in CI."""
    return "higl-ci" if environment.get("CI") else "higl"


settings.load_profile(hypothesis_profile(os.environ))


class NetworkUseError(RuntimeError):
    """A test tried to reach another machine."""


_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex
_getaddrinfo = socket.getaddrinfo


def _is_this_machine(host: object) -> bool:
    """Return whether a host name or address is this machine's, without asking another machine."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost", "ip6-localhost", socket.gethostname()):
        return True
    try:
        address = ip_address(str(name).partition("%")[0])
    except ValueError:  # a name server would have to resolve it
        return False
    if address.is_loopback or address.is_unspecified:
        return True
    try:  # only own addresses can be bound
        with socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _refuse(host: object) -> None:
    raise NetworkUseError(f"tests do not use the network, but this one tried to reach {host!r}")


def _check(sock: socket.socket, address: tuple) -> None:
    # Connecting a datagram socket sends nothing; Ray does it to find this machine's address.
    internet = sock.family in (socket.AF_INET, socket.AF_INET6)
    if internet and sock.type == socket.SOCK_STREAM and not _is_this_machine(address[0]):
        _refuse(address[0])


def _guarded_connect(self: socket.socket, address: tuple) -> None:
    _check(self, address)
    return _connect(self, address)


def _guarded_connect_ex(self: socket.socket, address: tuple) -> int:
    _check(self, address)
    return _connect_ex(self, address)


def _guarded_getaddrinfo(host, *args, **kwargs):
    try:
        ip_address(host)
    except ValueError:
        if not _is_this_machine(host):
            _refuse(host)
    return _getaddrinfo(host, *args, **kwargs)


@pytest.fixture(autouse=True, scope="session")
def _no_network():
    """Reject connections to other machines, and look-ups of their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", _guarded_connect)
        patch.setattr(socket.socket, "connect_ex", _guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", _guarded_getaddrinfo)
        yield
