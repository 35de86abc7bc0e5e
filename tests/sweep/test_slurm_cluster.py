"""The Slurm back end on a real Slurm of this machine alone, on loopback: jobs that are requeued, reach their time limit
or are killed, and commands that are stopped or die. Whatever happens, every run ends once, and complete.
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
from support.sweeps import STAND_IN, call_higl, evaluated, history, kill, status, wait_until

from higl.sweep.catalogue import read_catalogue
from higl.sweep.plan import PlannedRun, make_plan, read_status
from higl.sweep.slurm import job_name

PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
DAEMONS = {name: shutil.which(name, path=PLACES) for name in ("munged", "slurmctld", "slurmd")}
if importlib.util.find_spec("submitit") is None or None in DAEMONS.values() or os.getuid() != 0:
    pytest.skip(
        "SUBMITIT OR SLURM IS NOT INSTALLED, OR YOU ARE NOT ROOT, SO NOTHING OF THE SLURM BACK END IS TESTED: "
        "pip install 'higl[slurm]', apt-get install slurm-wlm munge",
        allow_module_level=True,
    )

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PATIENCE = 600.0
CPUS = 3
# A requeued job waits until its credential has expired: soon, for the tests.
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
    """Write the configuration of a Slurm of one machine, and the key of its munge."""
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
    """Return what a program of Slurm says."""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def jobs(run: PlannedRun) -> list[str]:
    """Return the jobs of a run, those that have ended included."""
    return ask("squeue", "--noheader", "--states=all", "--format=%i", f"--name={job_name(run)}").split()


def plan_of(path: Path, out: Path) -> list[PlannedRun]:
    return make_plan(read_catalogue(path)["toy"], out)


def start_driver(path: Path, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-c", DRIVER, str(path), str(out), STAND_IN[0]]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def said_at_the_end(driver: subprocess.Popen, code: int) -> str:
    said, _ = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == code, said
    return said


def at_work(run: PlannedRun) -> bool:
    now = read_status(run)
    return now.state == "running" and now.step > 200


def processes(run: PlannedRun) -> dict[str, int]:
    return json.loads((run.folder / "processes.json").read_text())


def assert_complete_once(run: PlannedRun, steps: int) -> None:
    assert status(run.folder) == "finished"
    assert evaluated(run.folder) == list(range(100, steps + 1, 100))
    assert sum(line.startswith("finish") for line in history(run.folder)) == 1


def continued(run: PlannedRun) -> bool:
    """Return whether a run saved, and went on from there later."""
    notes = history(run.folder)
    return any(first.startswith("stop ") and second == f"start {first[5:]}" for first, second in pairwise(notes))


def test_every_run_once_and_what_fails_is_named_and_not_retried(tmp_path, catalogue):
    path, out = catalogue(seeds=1, more='"unlucky" = { high.policy_period = 13 }\n'), tmp_path / "runs"
    plan = plan_of(path, out)
    said = said_at_the_end(start_driver(path, out), 1)
    for run in plan[:2]:
        assert_complete_once(run, 1_000)
        assert history(run.folder) == ["start 0", "finish 1000"]
    assert f"[('{plan[2].name}', \"failed at step 600: a stand-in's bad luck\")]" in said
    assert [len(jobs(run)) for run in plan] == [1, 1, 1]


def test_the_command_trains(tmp_path, catalogue):
    """No stand-in: `higl sweep run --slurm` with options, two real runs."""
    path, out = catalogue(steps=200, seeds=1), tmp_path / "runs"
    words = ["sweep", "run", "toy", "--catalogue", str(path), "--out", str(out), "--slurm", "partition=all,time=30"]
    called = call_higl(*words)
    assert called.returncode == 0, called.stderr
    assert "toy: 2 finished" in called.stdout
    for run in plan_of(path, out):
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
def test_what_slurm_does_not_know_is_one_line(tmp_path, options, message):
    called = call_higl("sweep", "run", "fig6", "--out", str(tmp_path), "--slurm", options)
    assert called.returncode == 1
    assert called.stderr.startswith(f"higl sweep: --slurm: sbatch: {message}")
    assert called.stderr.count("\n") == 1


def test_requeued_at_the_time_limit_and_killed(tmp_path, catalogue):
    path, out = catalogue(steps=8_000, seeds=1, more="third = { high.policy_period = 3 }\n"), tmp_path / "runs"
    requeued, limited, killed = plan = plan_of(path, out)
    driver = start_driver(path, out)
    wait_until(lambda: all(at_work(run) for run in plan), PATIENCE)
    ask("scontrol", "requeue", *jobs(requeued))
    ask("scancel", "--signal=USR2", *jobs(limited))  # what Slurm sends before the limit, which it looks at each minute
    kill(processes(killed)["parent"])
    said_at_the_end(driver, 0)
    for run in plan:
        assert_complete_once(run, 8_000)
    assert continued(requeued)
    assert continued(limited)
    assert [line for line in history(killed.folder) if line.startswith("start ")][1] != "start 0"
    assert [len(jobs(run)) for run in plan] == [1, 1, 2]


def test_stopped_then_killed_then_continued(tmp_path, catalogue):
    path, out = catalogue(steps=10_000, seeds=2), tmp_path / "runs"
    plan = plan_of(path, out)
    first = start_driver(path, out)
    wait_until(lambda: all(at_work(run) for run in plan[:CPUS]), PATIENCE)
    kill(first.pid, signal.SIGINT)
    said_at_the_end(first, 128 + signal.SIGINT)
    assert [status(run.folder) for run in plan] == ["stopped"] * CPUS + ["none"]
    assert not ask("squeue", "--noheader")

    second = start_driver(path, out)
    wait_until(lambda: all(at_work(run) for run in plan[:CPUS]), PATIENCE)
    kill(second.pid)
    second.communicate()
    said_at_the_end(start_driver(path, out), 0)
    for run in plan:
        assert_complete_once(run, 10_000)
    assert [len(history(run.folder)) for run in plan] == [4] * CPUS + [2]  # none was interrupted but by Ctrl-C
    assert [len(jobs(run)) for run in plan] == [2] * len(plan)


def test_a_second_ctrl_c_ends_at_once(tmp_path, catalogue):
    path, out = catalogue(steps=10_000, seeds=1), tmp_path / "runs"
    stuck, other = plan = plan_of(path, out)
    driver = start_driver(path, out)
    wait_until(lambda: all(at_work(run) for run in plan), PATIENCE)
    kill(processes(stuck)["self"], signal.SIGSTOP)
    kill(driver.pid, signal.SIGINT)
    wait_until(lambda: status(other.folder) == "stopped", PATIENCE)
    assert driver.poll() is None
    kill(driver.pid, signal.SIGINT)
    said_at_the_end(driver, 128 + signal.SIGINT)
    assert history(stuck.folder) == ["start 0"]
    assert read_status(stuck).state == "stopped"
