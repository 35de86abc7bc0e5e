"""`higl results`: copies of runs, the page, and test episodes as `higl eval` measures them."""

import json
from pathlib import Path

from support.sweeps import make_run
from support.tiny import higl

from higl.cli import main


def test_add_and_table(tmp_path, capsys):
    run = make_run(tmp_path / "run", [0.5])
    results, page = str(tmp_path / "results"), str(tmp_path / "page.md")
    assert main(["results", "add", str(run), "--results", results]) == 0
    assert main(["results", "table", "--results", results, "--page", page, "--check"]) == 1
    assert main(["results", "table", "--results", results, "--page", page]) == 0
    assert main(["results", "table", "--results", results, "--page", page, "--check"]) == 0
    capsys.readouterr()
    assert main(["results", "add", str(tmp_path / "none")]) == 2
    assert main(["results", "add"]) == 2
    assert main(["results", "tabel"]) == 2
    assert main(["results", "add", str(run), "--test", "-1"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"higl results: {tmp_path / 'none'} is not a run folder (it has no run.json)",
        "higl results: which runs? give their folders",
        "higl results: unknown command 'tabel'; did you mean table? (`higl results --help` lists them)",
        "higl results: --test -1: expected a number 0 or more",
    ]


def test_results_keep_what_eval_says(whole, tmp_path):
    told = json.loads(higl("eval", whole, "--episodes", 4, "--json", "--trust").stdout)
    done = higl("results", "add", whole, "--results", tmp_path, "--test", 4, "--trust")
    assert done.returncode == 0, done.stderr
    kept = json.loads((Path(done.stdout.strip()) / "test.json").read_text())
    assert kept["episodes"] == 4
    assert kept == {name: told[name] for name in kept}
