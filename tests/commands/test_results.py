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


def test_the_page_is_not_written_into_a_folder_that_has_none(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["results", "add", str(make_run(tmp_path / "run", [0.5]))]) == 0
    assert main(["results", "table"]) == 2
    assert capsys.readouterr().err == "higl results: docs/results.md is not here: name the page to write, --page FILE\n"
    assert not Path("docs").exists()
    assert main(["results", "table", "--page", "docs/results.md"]) == 0
    assert main(["results", "table"]) == 0


def test_check_names_runs_that_are_not_of_the_preset_of_today(tmp_path, capsys):
    for number, settings in enumerate([{}, {"low__exchange": 0.125}, {"low__exploration": 0.25, "seed": 1}]):
        run = make_run(tmp_path / f"{number}", [0.5], **settings)
        assert main(["results", "add", str(run), "--results", str(tmp_path / "results")]) == 0
    capsys.readouterr()
    words = ["results", "check", "--results", str(tmp_path / "results")]
    assert main(words) == 0, "their names say what differs"
    assert capsys.readouterr().out == "0 of 3 runs differ from the preset in more than their names say\n"
    place = tmp_path / "results" / "ant-maze-u-sparse"
    (place / "higl-low-exploration0.25").rename(place / "higl-exchange0.5")
    assert main(words) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{place / 'higl-exchange0.5' / 'seed-1'}: low.exploration = 0.25 -> ")
    assert last.startswith("1 of 3 runs differ")
    assert main(["results", "check", "--results", str(tmp_path / "none")]) == 2
