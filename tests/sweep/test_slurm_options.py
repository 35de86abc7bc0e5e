"""What the Slurm back end does without Slurm: its options, the names of jobs, and what a user is told."""

import importlib.util
import sys
from pathlib import Path

import pytest

from higl.cli import main
from higl.sweep.catalogue import read_catalogue
from higl.sweep.plan import make_plan
from higl.sweep.slurm import job_name, read_slurm_options

from .helpers import call_higl


def test_options():
    assert read_slurm_options("") == {}
    text = "partition=cpu,debug,time=12:00:00,mem=4G,mail-type=END"
    expected = {"partition": "cpu,debug", "time": "12:00:00", "mem": "4G", "mail-type": "END"}
    assert read_slurm_options(text) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--slurm", "partition="], "--slurm partition=: expected options of sbatch, as partition=cpu,"),
        (["--slurm", "=cpu"], "--slurm =cpu: expected options of sbatch"),
        (["--slurm", "mem=4G,"], "--slurm mem=4G,: expected options of sbatch"),
        (["--slurm", "mem=4G,,time=1"], "--slurm mem=4G,: expected options of sbatch"),
        (["--slurm", "Mem=4G"], "--slurm Mem=4G: expected options of sbatch"),
        (["--slurm", "mem=4G,nodes=2"], "--slurm nodes=2: higl itself decides on nodes"),
        (["--slurm", "--ray"], "--slurm and --ray: choose one of them"),
        (["--slurm", "mem=4G", "--cores", "0"], "--slurm and --cores: choose one of them"),
        (["--slurm", "partition"], "unexpected argument 'partition'"),
    ],
)
def test_mistakes(words, message, tmp_path, capsys):
    assert main(["sweep", "run", "fig6", "--out", str(tmp_path), *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_without_submitit_the_extra_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert main(["sweep", "run", "fig6", "--out", str(tmp_path), "--slurm"]) == 1
    assert capsys.readouterr().err == "higl sweep: --slurm needs the extra `slurm`: pip install 'higl[slurm]'\n"


@pytest.mark.skipif(importlib.util.find_spec("submitit") is None, reason="submitit is not installed")
def test_without_slurm_one_line_says_so(tmp_path):
    called = call_higl("sweep", "run", "fig6", "--out", str(tmp_path), "--slurm", "mem=4G", PATH=str(tmp_path))
    assert called.returncode == 1
    expected = "higl sweep: --slurm: no sbatch on this machine; start the sweep where jobs can be submitted\n"
    assert called.stderr == expected


def test_a_run_has_one_name_wherever_the_command_is_started(monkeypatch, tmp_path):
    [run, other, *_] = make_plan(read_catalogue()["fig3"], tmp_path / "runs")
    name = job_name(run)
    monkeypatch.chdir(tmp_path)
    assert job_name(make_plan(read_catalogue()["fig3"], Path("runs"))[0]) == name
    assert run.name in name
    elsewhere = make_plan(read_catalogue()["fig3"], tmp_path / "elsewhere")[0]
    assert len({name, job_name(other), job_name(elsewhere)}) == 3
