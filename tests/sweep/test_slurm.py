"""The Slurm back end without Slurm: options, names of jobs, messages, and rejected jobs."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.sweeps import call_higl

from higl.cli import main
from higl.errors import SlurmError
from higl.sweep import slurm
from higl.sweep.catalogue import read_catalogue
from higl.sweep.plan import make_plan
from higl.sweep.slurm import SlurmBackend, job_name, read_slurm_options


def test_options():
    assert read_slurm_options("") == {}
    text = "partition=cpu,debug,time=12:00:00,mem=4G,mail-type=END"
    expected = {"partition": "cpu,debug", "time": "12:00:00", "mem": "4G", "mail-type": "END"}
    assert read_slurm_options(text) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--slurm", "partition="], "--slurm partition=: expected sbatch options such as partition=cpu,"),
        (["--slurm", "=cpu"], "--slurm =cpu: expected sbatch options"),
        (["--slurm", "mem=4G,"], "--slurm mem=4G,: expected sbatch options"),
        (["--slurm", "mem=4G,,time=1"], "--slurm mem=4G,: expected sbatch options"),
        (["--slurm", "Mem=4G"], "--slurm Mem=4G: expected sbatch options"),
        (["--slurm", "mem=4G,nodes=2"], "--slurm nodes=2: higl sets nodes itself"),
        (["--slurm", "--ray"], "--slurm and --ray: choose one of them"),
        (["--slurm", "mem=4G", "--cores", "0"], "--slurm and --cores: choose one of them"),
        (["--ray", "--cores", "0"], "--ray and --cores: choose one of them"),
        (["--slurm", "partition"], "--slurm partition: expected sbatch options such as partition=cpu,"),
        (["--ray", "10.0.0.1"], "--ray 10.0.0.1: expected HOST:PORT, `local` or nothing"),
        (["--ray", "myhead"], "--ray myhead: expected HOST:PORT, `local` or nothing"),
        (["--ray", "local", "more"], "unexpected argument 'more'"),
    ],
)
def test_mistakes_are_reported_in_one_line(words, message, tmp_path, capsys):
    assert main(["sweep", "run", "fig6", "--out", str(tmp_path), *words]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_message_without_submitit_names_the_extra(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert main(["sweep", "run", "fig6", "--out", str(tmp_path), "--slurm"]) == 1
    assert capsys.readouterr().err == "higl sweep: --slurm needs the extra `slurm`: pip install 'higl[slurm]'\n"


@pytest.mark.skipif(importlib.util.find_spec("submitit") is None, reason="submitit is not installed")
def test_message_without_slurm_is_one_line(tmp_path):
    called = call_higl("sweep", "run", "fig6", "--out", str(tmp_path), "--slurm", "mem=4G", PATH=str(tmp_path))
    assert called.returncode == 1
    expected = "higl sweep: --slurm: no sbatch on this machine; start the sweep where jobs can be submitted\n"
    assert called.stderr == expected


def test_job_name_does_not_depend_on_the_working_directory(monkeypatch, tmp_path):
    [run, other, *_] = make_plan(read_catalogue()["fig3"], tmp_path / "runs")
    name = job_name(run)
    monkeypatch.chdir(tmp_path)
    assert job_name(make_plan(read_catalogue()["fig3"], Path("runs"))[0]) == name
    assert run.name in name
    elsewhere = make_plan(read_catalogue()["fig3"], tmp_path / "elsewhere")[0]
    assert len({name, job_name(other), job_name(elsewhere)}) == 3


class FullSlurm:
    """A Slurm with a limit on the jobs that a user may have at once."""

    def __init__(self, room: int):
        self.room, self.states = room, {}

    def update_parameters(self, **parameters) -> None:
        """Ignore them."""

    def submit(self, job) -> SimpleNamespace:
        if sum(state == "RUNNING" for state, _ in self.states.values()) >= self.room:
            raise RuntimeError("sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed")
        number = str(len(self.states) + 1)
        self.states[number] = ("RUNNING", job_name(job.run))
        return SimpleNamespace(job_id=number)

    def end(self, job: str) -> None:
        self.states[job] = ("CANCELLED", "")


@pytest.fixture
def full(monkeypatch, tmp_path):
    full = FullSlurm(room=2)
    monkeypatch.setattr(slurm, "make_executor", lambda folder, options: full)
    monkeypatch.setattr(slurm, "_queue", lambda: dict(full.states))
    monkeypatch.setattr(slurm, "_scancel", lambda *words: [full.end(job) for job in full.states if job in words])
    monkeypatch.setattr(slurm, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(slurm, "_RESUBMIT_SECONDS", 0.0)
    (tmp_path / ".sweep").mkdir()
    return full


def test_rejected_run_is_submitted_when_there_is_room(full, tmp_path, capsys):
    first, second, third, *_ = make_plan(read_catalogue()["fig3"], tmp_path)
    backend = SlurmBackend({}, tmp_path, 5.0)
    for run in (first, second, third):
        assert backend.free()
        backend.start(run)
    assert (backend.free(), backend.active()) == (False, 3)
    assert backend.poll() == []
    message = "higl: sbatch: AssocMaxSubmitJobLimit; Batch job submission failed: the remaining runs are"
    assert capsys.readouterr().err.count(message) == 1
    full.end("1")
    assert [ended.run for ended in backend.poll()] == [first]
    assert (backend.free(), backend.active()) == (True, 2)
    assert full.states["3"] == ("RUNNING", job_name(third))


def test_job_that_cannot_be_resubmitted_waits_and_stops_with_the_others(full, tmp_path, capsys):
    first, second, third, *_ = make_plan(read_catalogue()["fig3"], tmp_path)
    backend = SlurmBackend({}, tmp_path, 5.0)
    backend.start(first)
    backend.start(second)
    full.states["1"], full.room = ("NODE_FAIL", ""), 1
    assert backend.poll() == []  # the first run needs another job, for which there is no room
    assert (backend.free(), backend.active()) == (False, 2)
    backend.stop()
    assert {ended.run.name for ended in backend.poll()} == {first.name, second.name}
    assert backend.active() == 0
    full.room = 0
    with pytest.raises(SlurmError, match="--slurm: sbatch: AssocMaxSubmitJobLimit"):
        SlurmBackend({}, tmp_path, 5.0).start(third)
