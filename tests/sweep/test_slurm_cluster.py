"""The Slurm back end on a real Slurm on this machine, on loopback.

Jobs are requeued, reach their time limit or are killed, and the command is stopped or killed. Every run must still be
complete and finish once.
"""

import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from support.sweeps import STAND_IN, call_higl, evaluated, history, kill, status, toy_plan, wait_until

from higl.sweep.plan import PlannedRun, read_status
from higl.sweep.slurm import job_name

PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
DAEMONS = {name: shutil.which(name, path=PLACES) for name in ("munged", "slurmctld", "slurmd")}
if importlib.util.find_spec("submitit") is None or None in DAEMONS.values() or os.getuid() != 0:
    pytest.skip(
        "SUBMITIT OR SLURM IS NOT INSTALLED, OR YOU ARE NOT ROOT, SO THE SLURM BACK END IS NOT TESTED ON A CLUSTER: "
        "pip install 'higl[slurm]', apt-get install slurm-wlm munge",
        allow_module_level=True,
    )

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PATIENCE = 600.0
CPUS = 3
# A requeued job waits until its credential has expired, so it expires soon.
CONFIGURATION = """
ClusterName=higl
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
DRIVER = """
import sys
from pathlib import Path
from rich.console import Console
from higl.sweep.catalogue import read_catalogue
from higl.sweep.plan import make_plan
from higl.sweep.runner import run_sweep
from higl.sweep.slurm import SlurmBackend
path, out, program = sys.argv[1:4]
plan = make_plan(read_catalogue(Path(path))["toy"], Path(out))
summary = run_sweep(plan, SlurmBackend({}, Path(out), 0.0, (program,)), Console(), "toy")
print([(run.name, reason) for run, reason in summary.failed])
sys.exit(summary.exit_code)
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def configure(folder: Path) -> None:
    """Write the configuration of a Slurm with one machine, and the key of munge."""
    controller_port, node_port = free_ports(2)
    host = socket.gethostname().partition(".")[0]
    text = CONFIGURATION.format(
        host=host, controller_port=controller_port, node_port=node_port, folder=folder, cpus=CPUS
    )
    (folder / "slurm.conf").write_text(text)
    (folder / "munge.key-file").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key-file").chmod(0o400)
    for name in ("state", "spool"):
        (folder / name).mkdir()


@pytest.fixture(scope="module", autouse=True)
def slurm():
    folder = Path(tempfile.mkdtemp(prefix="higl-slurm-"))
    configure(folder)
    files = ("key-file", "socket", "pid-file", "log-file", "seed-file")
    munge = [f"--{name}={folder / 'munge'}.{name}" for name in files]
    daemons: list[subprocess.Popen] = []

    def start(name: str, *words: str) -> None:
        with open(folder / f"{name}.out", "wb") as said:
            daemons.append(subprocess.Popen([DAEMONS[name], *words], stdout=said, stderr=said, start_new_session=True))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        try:
            start("munged", "--foreground", "--force", "--num-threads=1", *munge)
            wait_until((folder / "munge.socket").exists, PATIENCE)
            start("slurmctld", "-D")
            start("slurmd", "-D")
            wait_until(lambda: "idle" in ask("sinfo", "--noheader"), PATIENCE)
            yield
        finally:
            ask("scancel", "--signal=KILL", "--me")
            wait_until(lambda: not ask("squeue", "--noheader"), PATIENCE)
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait()
            shutil.rmtree(folder, ignore_errors=True)


def ask(*words: str) -> str:
    """Return the output of a program of Slurm."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def jobs(run: PlannedRun) -> list[str]:
    """Return the ids of a run's jobs, including those that ended."""
    return ask("squeue", "--noheader", "--states=all", "--format=%i", f"--name={job_name(run)}").split()


def start_driver(path: Path, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-c", DRIVER, str(path), str(out), STAND_IN[0]]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def output_of(driver: subprocess.Popen, code: int) -> str:
    said, _ = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == code, said
    return said


def is_running(run: PlannedRun) -> bool:
    now = read_status(run)
    return now.state == "running" and now.step > 200


def processes(run: PlannedRun) -> dict[str, int]:
    return json.loads((run.folder / "processes.json").read_text())


def assert_complete_once(run: PlannedRun, steps: int) -> None:
    assert status(run.folder) == "finished"
    assert evaluated(run.folder) == list(range(100, steps + 1, 100))
    assert sum(line.startswith("finish") for line in history(run.folder)) == 1


def continued(run: PlannedRun) -> bool:
    """Return whether a run saved and later continued from there."""
    notes = history(run.folder)
    return any(first.startswith("stop ") and second == f"start {first[5:]}" for first, second in pairwise(notes))


def test_runs_are_executed_once_and_failures_are_not_retried(tmp_path, catalogue):
    path, out = catalogue(seeds=1, more='"unlucky" = { batch_size = 13 }\n'), tmp_path / "runs"
    plan = toy_plan(path, out)
    said = output_of(start_driver(path, out), 1)
    for run in plan[:2]:
        assert_complete_once(run, 1_000)
        assert history(run.folder) == ["start 0", "finish 1000"]
    assert f"[('{plan[2].name}', \"failed at step 600: a stand-in's bad luck\")]" in said
    assert [len(jobs(run)) for run in plan] == [1, 1, 1]


def test_command_trains(tmp_path, catalogue):
    """`higl sweep run --slurm` with options and two real runs."""
    path, out = catalogue(steps=200, seeds=1), tmp_path / "runs"
    words = ["sweep", "run", "toy", "--catalogue", str(path), "--out", str(out), "--slurm", "partition=all,time=30"]
    called = call_higl(*words)
    assert called.returncode == 0, called.stderr
    assert "toy: 2 finished" in called.stdout
    for run in toy_plan(path, out):
        assert status(run.folder) == "finished"
        assert evaluated(run.folder)[-1] >= 200
        assert (run.folder / "policy.safetensors").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("acount=x", "unrecognized option '--acount=x'"),
        ("partition=none,time=1:00:00", "invalid partition specified: none"),
    ],
)
def test_errors_of_sbatch_are_reported_in_one_line(tmp_path, options, message):
    called = call_higl("sweep", "run", "fig6", "--out", str(tmp_path), "--slurm", options)
    assert called.returncode == 1
    assert called.stderr.startswith(f"higl sweep: --slurm: sbatch: {message}")
    assert called.stderr.count("\n") == 1


def test_runs_continue_after_requeue_time_limit_and_kill(tmp_path, catalogue):
    path, out = catalogue(steps=8_000, seeds=1, more="third = { batch_size = 3 }\n"), tmp_path / "runs"
    requeued, limited, killed = plan = toy_plan(path, out)
    driver = start_driver(path, out)
    wait_until(lambda: all(is_running(run) for run in plan), PATIENCE)
    ask("scontrol", "requeue", *jobs(requeued))
    ask("scancel", "--signal=USR2", *jobs(limited))  # what Slurm sends before the limit, which it checks every minute
    kill(processes(killed)["parent"])
    output_of(driver, 0)
    for run in plan:
        assert_complete_once(run, 8_000)
    assert continued(requeued)
    assert continued(limited)
    assert [line for line in history(killed.folder) if line.startswith("start ")][1] != "start 0"
    assert [len(jobs(run)) for run in plan] == [1, 1, 2]


def test_sweep_continues_after_stop_and_kill(tmp_path, catalogue):
    path, out = catalogue(steps=10_000, seeds=2), tmp_path / "runs"
    plan = toy_plan(path, out)
    first = start_driver(path, out)
    wait_until(lambda: all(is_running(run) for run in plan[:CPUS]), PATIENCE)
    kill(first.pid, signal.SIGINT)
    output_of(first, 128 + signal.SIGINT)
    assert [status(run.folder) for run in plan] == ["stopped"] * CPUS + ["none"]
    assert not ask("squeue", "--noheader")

    second = start_driver(path, out)
    wait_until(lambda: all(is_running(run) for run in plan[:CPUS]), PATIENCE)
    kill(second.pid)
    second.communicate()
    output_of(start_driver(path, out), 0)
    for run in plan:
        assert_complete_once(run, 10_000)
    assert [len(history(run.folder)) for run in plan] == [4] * CPUS + [2]  # only Ctrl-C interrupted them
    assert [len(jobs(run)) for run in plan] == [2] * len(plan)


def test_second_ctrl_c_kills_the_runs(tmp_path, catalogue):
    path, out = catalogue(steps=10_000, seeds=1), tmp_path / "runs"
    stuck, other = plan = toy_plan(path, out)
    driver = start_driver(path, out)
    wait_until(lambda: all(is_running(run) for run in plan), PATIENCE)
    kill(processes(stuck)["self"], signal.SIGSTOP)
    kill(driver.pid, signal.SIGINT)
    wait_until(lambda: status(other.folder) == "stopped", PATIENCE)
    assert driver.poll() is None
    kill(driver.pid, signal.SIGINT)
    output_of(driver, 128 + signal.SIGINT)
    assert history(stuck.folder) == ["start 0"]
    assert read_status(stuck).state == "stopped"
