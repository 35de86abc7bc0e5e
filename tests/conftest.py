"""Defaults of the whole test suite: the CPU, one thread per worker, no network, deterministic in CI.

Environment variables are set before anything imports JAX or MuJoCo, and reach the workers of xdist and every
process that a test starts (a plugin imports NumPy before this file, so a run without workers has its threads).
A variable that is set already wins.
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
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["support.fixtures"]


def _cache_directory() -> Path:
    """Return a folder for compiled JAX programs: one for each jaxlib version and kind of processor."""
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
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        base = Path(tempfile.mkdtemp(prefix="higl-tests-"))
    return base / name


DEFAULTS = {
    "JAX_PLATFORMS": "cpu",
    "MPLBACKEND": "Agg",
    # `make test` runs two workers, so each keeps to one thread; the last of these is for XLA.
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
    if importlib.util.find_spec("filelock"):  # JAX locks a cache of limited size, so that workers can share it
        DEFAULTS["JAX_COMPILATION_CACHE_MAX_SIZE"] = str(2**30)
for _name, _value in DEFAULTS.items():
    os.environ.setdefault(_name, _value)


# Started in the background by a shell, the tests have interrupts ignored, and so would the processes that they send
# interrupts to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("higl", **_COMMON)
settings.register_profile("higl-ci", derandomize=True, **_COMMON)
settings.load_profile("higl-ci" if os.environ.get("CI") else "higl")


class NetworkUseError(RuntimeError):
    """A test tried to reach another machine."""


_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex
_getaddrinfo = socket.getaddrinfo


def _is_this_machine(host: object) -> bool:
    """Say whether a host name or address is this machine's own, without asking any other machine."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost", "ip6-localhost", socket.gethostname()):
        return True
    try:
        address = ip_address(str(name).partition("%")[0])
    except ValueError:  # a name that a name server would have to resolve
        return False
    if address.is_loopback or address.is_unspecified:
        return True
    try:  # only an address of this machine can be bound
        with socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


def _refuse(host: object) -> None:
    raise NetworkUseError(f"tests do not use the network, and this one asked for {host!r}")


def _check(sock: socket.socket, address: tuple) -> None:
    # Connecting a datagram socket sends nothing; Ray does it to learn this machine's own address.
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
    """Refuse connections to, and name look-ups of, any machine but this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", _guarded_connect)
        patch.setattr(socket.socket, "connect_ex", _guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", _guarded_getaddrinfo)
        yield
