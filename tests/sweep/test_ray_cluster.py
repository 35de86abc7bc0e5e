"""The Ray back end on a real cluster of two nodes on loopback, with token authentication.

Workers, nodes and drivers are killed in the middle of runs. Every run must still be complete and finish once.
"""

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.sweeps import STAND_IN, evaluated, history, kill, status, toy_plan, wait_until

from higl.sweep.plan import read_status

if importlib.util.find_spec("ray") is None:
    pytest.skip(
        "RAY IS NOT INSTALLED, SO THE RAY BACK END IS NOT TESTED ON A CLUSTER: pip install 'higl[ray]'",
        allow_module_level=True,
    )

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PATIENCE = 600.0
# Short health checks, so that Ray notices a dead node soon. Long start times, because the machine may be busy.
HEALTH = {
    "RAY_raylet_start_wait_time_s": "60",
    "RAY_worker_register_timeout_seconds": "240",
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "5",
}
DRIVER = """
import sys
from pathlib import Path
from rich.console import Console
from higl.sweep.catalogue import read_catalogue
from higl.sweep.plan import make_plan
from higl.sweep.ray import RayBackend
from higl.sweep.runner import run_sweep
address, path, out, program = sys.argv[1:5]
plan = make_plan(read_catalogue(Path(path))["toy"], Path(out))
summary = run_sweep(plan, RayBackend(address, 0.0, tuple(program.split())), Console(), "toy")
print(summary.failed)
sys.exit(summary.exit_code)
"""
WORKER = "-m higl.sweep.worker"


class Cluster:
    """A head node without cores for tasks, and two nodes with one core each, which tests may kill.

    A separate process (`ray_nodes.py`) starts the nodes and prints their process ids.
    """

    def __init__(self, environment: dict[str, str]):
        self.environment = environment
        self._keeper = subprocess.Popen(
            [sys.executable, str(Path(__file__).parents[1] / "support" / "ray_nodes.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.address = self._answer()["address"]
        self.nodes = [self.add_node(), self.add_node()]

    def add_node(self) -> int:
        """Add a node with one core; return its main process."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.write("add\n")
        self._keeper.stdin.flush()
        return self._answer()["raylet"]

    def _answer(self) -> dict:
        assert self._keeper.stdout is not None
        for line in self._keeper.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise AssertionError("the nodes could not be started")

    def kill_node(self, node: int) -> None:
        """Kill a node and everything on it at once, like a power cut."""
        for process in [node, *descendants(node)]:
            with contextlib.suppress(ProcessLookupError):
                kill(process)
        self.nodes.remove(node)

    def close(self) -> None:
        """End all nodes."""
        self._keeper.communicate()


def parents() -> dict[int, int]:
    """Return the parent of every process."""
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                found[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    return found


def descendants(process: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    table = parents()
    found, level = [], [process]
    while level:
        level = [child for child, parent in table.items() if parent in level]
        found += level
    return found


@pytest.fixture(scope="module")
def cluster():
    # The paths of sockets must be short.
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"higl-ray-{os.getpid()}"
    (folder / "ray").mkdir(parents=True)
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    mine = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_USAGE_STATS_ENABLED": "0", **HEALTH}
    mine["RAY_TMPDIR"] = str(folder)
    mine["RAY_worker_niceness"] = "0"  # with Ray's default, 15, a worker starves beside a busy process
    mine["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # nodes listen on 127.0.0.1 only
    with pytest.MonkeyPatch.context() as patch:
        for name, value in mine.items():
            patch.setenv(name, value)
        patch.delenv("RAY_AUTH_TOKEN", raising=False)
        patch.delenv("RAY_ADDRESS", raising=False)
        started = Cluster(dict(os.environ))
        try:
            yield started
        finally:
            started.close()
            shutil.rmtree(folder, ignore_errors=True)


def start_driver(cluster: Cluster, path: Path, out: Path, program: str = STAND_IN[0]) -> subprocess.Popen:
    command = [sys.executable, "-c", DRIVER, cluster.address, str(path), str(out), program]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=cluster.environment
    )


def assert_ends_well(driver: subprocess.Popen) -> None:
    said, _ = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 0, said


def assert_complete_once(plan, steps: int) -> None:
    for run in plan:
        assert status(run.folder) == "finished"
        assert evaluated(run.folder) == list(range(100, steps + 1, 100))
        assert sum(line.startswith("finish ") for line in history(run.folder)) == 1, history(run.folder)


def processes(run) -> dict[str, int]:
    return json.loads((run.folder / "processes.json").read_text())


def both_running(plan) -> bool:
    return sum(read_status(run).step >= 300 for run in plan) >= 2


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="sockets are read from /proc")
def test_nodes_listen_on_loopback_only(cluster):
    mine = {inode for node in cluster.nodes for process in [node, *descendants(node)] for inode in sockets(process)}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    rows += [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[9] in mine]
    assert listening
    assert all(address.partition(":")[0].endswith("0100007F") for address in listening), listening


def sockets(process: int) -> list[str]:
    """Return the inodes of a process's sockets."""
    found = []
    for place in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = os.readlink(place)
            if target.startswith("socket:["):
                found.append(target[8:-1])
    return found


def test_wrong_token_is_rejected(cluster, tmp_path, catalogue):
    (tmp_path / "wrong").write_text("f" * 64)
    environment = cluster.environment | {"RAY_AUTH_TOKEN_PATH": str(tmp_path / "wrong")}
    code = f"import ray; ray.init(address={cluster.address!r}, logging_level='ERROR')"
    stranger = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert stranger.returncode != 0
    assert "token" in (stranger.stdout + stranger.stderr).lower()


def test_run_survives_a_killed_worker(cluster, tmp_path, catalogue):
    path, out = catalogue(steps=6_000, seeds=1), tmp_path / "runs"
    plan = toy_plan(path, out)
    driver = start_driver(cluster, path, out)
    wait_until(lambda: both_running(plan), PATIENCE)
    kill(processes(plan[0])["parent"])
    assert_ends_well(driver)
    assert_complete_once(plan, 6_000)
    assert any(line.startswith("start ") and line != "start 0" for line in history(plan[0].folder))


def test_run_survives_a_killed_node(cluster, tmp_path, catalogue):
    path, out = catalogue(steps=6_000, seeds=1), tmp_path / "runs"
    plan = toy_plan(path, out)
    driver = start_driver(cluster, path, out)
    wait_until(lambda: both_running(plan), PATIENCE)
    [node] = [node for node in cluster.nodes if processes(plan[0])["self"] in descendants(node)]
    cluster.kill_node(node)
    assert_ends_well(driver)
    assert_complete_once(plan, 6_000)
    assert any(line.startswith("start ") and line != "start 0" for line in history(plan[0].folder))
    cluster.nodes.append(cluster.add_node())


def test_restarted_driver_continues(cluster, tmp_path, catalogue):
    path, out = catalogue(steps=6_000, seeds=1), tmp_path / "runs"
    plan = toy_plan(path, out)
    first = start_driver(cluster, path, out)
    wait_until(lambda: both_running(plan), PATIENCE)
    kill(first.pid)
    first.communicate()
    assert_ends_well(start_driver(cluster, path, out))
    assert_complete_once(plan, 6_000)


def test_ctrl_c_stops_and_the_same_command_continues(cluster, tmp_path, catalogue):
    path, out = catalogue(steps=6_000, seeds=1), tmp_path / "runs"
    plan = toy_plan(path, out)
    first = start_driver(cluster, path, out)
    wait_until(lambda: both_running(plan), PATIENCE)
    kill(first.pid, signal.SIGINT)
    said, _ = first.communicate(timeout=PATIENCE)
    assert first.returncode == 128 + signal.SIGINT, said
    assert [status(run.folder) for run in plan] == ["stopped", "stopped"]
    assert_ends_well(start_driver(cluster, path, out))
    assert_complete_once(plan, 6_000)


def test_training_survives_a_killed_worker(cluster, tmp_path, catalogue):
    path, out = catalogue(steps=1_500, seeds=1), tmp_path / "runs"
    plan = toy_plan(path, out)[:1]
    driver = start_driver(cluster, path, out, WORKER)
    wait_until(lambda: read_status(plan[0]).step > 0, PATIENCE)
    holder = int((plan[0].folder / "lock").read_text().split()[1])
    kill(parents()[holder])
    assert_ends_well(driver)
    steps = [json.loads(line)["step"] for line in (plan[0].folder / "metrics.jsonl").read_text().splitlines()]
    assert steps == [500, 1000, 1500]
    assert evaluated(plan[0].folder) == [500, 1000, 1500]
