"""The command line of sweeps, on existing run folders."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.sweeps import make_run
from support.synthetic import synthetic_run

from higl.cli import main
from higl.settings.layers import to_toml
from higl.sweep.catalogue import read_catalogue
from higl.sweep.plan import make_plan


@pytest.fixture
def out(tmp_path) -> Path:
    """Some runs of figure 4a's first seeds: two finished ones, and one that failed."""
    settings = {"preset": "paper", "reward": "dense", "steps": 1_000_000}
    for place, (coverage, name) in enumerate([(0, "-coverage0"), (10, "-coverage10"), (20, "")]):
        folder = tmp_path / "runs" / f"ant-maze-u-dense-higl-paper{name}-0"
        state = "finished" if place else "failed"
        make_run(folder, [0.1 * place] * 8, state, landmarks__coverage=coverage, **settings)
    return tmp_path / "runs"


def test_list_and_show(capsys):
    assert main(["sweep", "list"]) == 0
    said = capsys.readouterr().out
    rows = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    for name, entry in read_catalogue().items():
        assert f" {entry.preset} " in rows[name]
    assert main(["sweep", "show", "fig5b", "--no-estimate", "--seeds", "1"]) == 0
    said = capsys.readouterr().out
    assert "Figure 5b: shift of the pseudo-landmark (preset paper)" in said
    assert "ant-maze-u-dense-higl-paper-shift4-0" in said
    assert "3 runs; how long they take is unknown" in said
    assert main(["sweep", "show", "fig3-best", "--no-estimate", "--seeds", "1"]) == 0
    assert "nine tasks (preset best)" in capsys.readouterr().out


def test_status(out, capsys):
    assert main(["sweep", "status", "fig4a", "--out", str(out), "--seeds", "2", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["state"] for row in rows] == ["failed", "finished", "finished", "waiting", "waiting", "waiting"]
    assert rows[1]["step"] == 40_000
    assert rows[1]["success"] == 0.1
    assert main(["sweep", "status", "fig4a", "--out", str(out)]) == 0
    assert "40k of 1M" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figure(out, tmp_path, capsys, suffix):
    file = tmp_path / f"figure.{suffix}"
    words = ["sweep", "figure", "fig4a", "--out", str(out), "-o", str(file)]
    assert main(words) == 0
    assert capsys.readouterr().out == f"{file}: 3 of 12 runs, 1 of them not finished\n"
    if suffix == "svg":
        text = file.read_text()
        assert "Figure 4a" in text
        assert "M_cov 10 (1 seed)" in text
    else:
        assert file.read_bytes().startswith(b"\x89PNG")
    assert main([*words, "--iqm"]) == 0


def test_a_folder_with_another_run_is_no_part_of_the_figure(out, tmp_path, capsys):
    """Its curve would go by the name of settings that it does not have."""
    other, damaged = (out / f"ant-maze-u-dense-higl-paper-coverage{coverage}-0" for coverage in (0, 10))
    text = (other / "config.toml").read_text()
    (other / "config.toml").write_text(text.replace("coverage = 0", "coverage = 30"))
    (damaged / "config.toml").write_text("[broken")
    file = tmp_path / "figure.svg"
    words = ["sweep", "figure", "fig4a", "--out", str(out), "-o", str(file)]
    assert main(words) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{file}: 1 of 12 runs"
    assert said[1].startswith(f"left out: {other.name}: {other} holds a run with other settings (landmarks.coverage")
    assert said[2].startswith(f"left out: {damaged.name}: {damaged / 'config.toml'}")
    assert "M_cov 20 (1 seed)" in file.read_text()
    assert "M_cov 0" not in file.read_text()
    assert main([*words, "--only", "coverage0"]) == 2
    assert "holds a run with other settings" in capsys.readouterr().err


def test_figure_of_landmarks(tmp_path, capsys):
    """Figure 6 is made of landmark maps, of the first run that has any."""
    config = make_plan(read_catalogue()["fig6"], tmp_path)[0].config
    for seed in range(2):
        folder = tmp_path / f"ant-maze-u-dense-higl-paper-{seed}"
        synthetic_run(folder, "ant-maze-u", snapshots=3 * seed)
        (folder / "config.toml").write_text(to_toml(replace(config, seed=seed)))
        facts = json.loads((folder / "run.json").read_text()) | {"saved_step": config.steps}
        (folder / "run.json").write_text(json.dumps(facts))
    file = tmp_path / "figure.svg"
    words = ["sweep", "figure", "fig6", "--out", str(tmp_path), "-o", str(file)]
    assert main(words) == 1
    assert "has no snapshot yet" in capsys.readouterr().err
    assert main([*words, "--seeds", "2"]) == 0
    assert capsys.readouterr().out == f"{file}: ant-maze-u-dense-higl-paper-1\n"
    assert "Figure 6" in file.read_text()
    assert "Ant Maze U (dense): HIGL, seed 1" in file.read_text()


def test_times_left(out, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("higl.commands.sweep.prepare_process", lambda cores: None)
    monkeypatch.setattr("higl.commands.sweep.measured", lambda config: 3.6)
    core = str(min(os.sched_getaffinity(0)))
    assert main(["sweep", "show", "fig4a", "--out", str(out), "--seeds", "2", "--cores", core]) == 0
    said = capsys.readouterr()
    # Of a million steps the failed run has 40,000, and three runs none.
    assert "6 runs, 3h 57m of work left: about 3h 57m on 1 core\n" in said.out
    assert "57m 36s" in said.out
    lines = [f"measuring {place} of 3: higl on ant-maze-u, {10 * place - 10} + 20 landmarks" for place in (1, 2, 3)]
    assert said.err.splitlines()[0].startswith("measuring 3 kinds of runs, a minute or two each")
    assert said.err.splitlines()[1:] == lines


def test_figure_without_runs(tmp_path, capsys):
    assert main(["sweep", "figure", "fig3", "--out", str(tmp_path)]) == 2
    assert "no run of fig3 has started" in capsys.readouterr().err


def test_collect(out, tmp_path, capsys):
    results = tmp_path / "results"
    assert main(["sweep", "collect", "fig4a", "--out", str(out), "--results", str(results)]) == 0
    assert "2 of 12 runs are finished" in capsys.readouterr().out
    assert len(list(results.glob("ant-maze-u-dense/*/seed-0/facts.json"))) == 2


def test_collect_tests_the_policies_if_asked(out, tmp_path, capsys, monkeypatch):
    """At any step and at the last one, as `higl results add --test` does."""
    summary = {"episodes": 100, "successes": 90, "successes_at_end": 80}
    monkeypatch.setattr("higl.commands.sweep.tested", lambda run, episodes: summary | {"asked": episodes})
    words = ["sweep", "collect", "fig4a", "--out", str(out), "--results", str(tmp_path / "results")]
    assert main([*words, "--test", "100"]) == 0
    tests = [json.loads(file.read_text()) for file in (tmp_path / "results").glob("*/*/*/test.json")]
    assert tests
    assert all(test == summary | {"asked": 100} for test in tests)
    assert main([*words, "--test", "-1"]) == 2
    assert capsys.readouterr().err == "higl sweep: --test -1: expected a number 0 or more\n"


def test_a_run_that_cannot_be_collected_stops_no_other(out, tmp_path, capsys):
    """And one that stopped on its way to more steps than the sweep asks for is taken, as it is done for the sweep."""
    results = tmp_path / "results"
    (out / "ant-maze-u-dense-higl-paper-coverage10-0" / "eval.csv").unlink()
    facts = out / "ant-maze-u-dense-higl-paper-coverage0-0" / "run.json"
    facts.write_text(json.dumps(json.loads(facts.read_text()) | {"status": "stopped", "saved_step": 40_000}))
    words = ["--seeds", "1", "--steps", "30000", "--results", str(results)]
    assert main(["sweep", "collect", "fig4a", "--out", str(out), *words]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == f"2 of 3 runs are finished and in {results}"
    name = "ant-maze-u-dense-higl-paper-coverage10-0"
    assert said.err == f"higl sweep: not collected: {name}: {out / name} has no evaluations yet\n"
    assert len(list(results.glob("ant-maze-u-dense/*/seed-0/facts.json"))) == 2


def test_the_list_tells_short_sweeps(tmp_path, capsys):
    (tmp_path / "own.toml").write_text('[mine]\nsteps = 3\ntasks = ["reacher"]\nvariants = { a = {} }\n')
    assert main(["sweep", "list", "--catalogue", str(tmp_path / "own.toml")]) == 0
    assert capsys.readouterr().out.split()[-2:] == ["1", "3"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "higl sweep: which sweep? `higl sweep list` lists them"),
        (["run", "fig3", "--checkpoint-minutes", "-1"], "--checkpoint-minutes -1: expected a number 0 or more"),
        (["figure", "fig3", "-o", "fig3.txt"], "fig3.txt: the name must end in .png or .svg or .pdf"),
        (["run", "fig3", "--seeds", "0"], "--seeds 0: expected a number from 1 to 1,000"),
        (["run", "fig3", "--seeds", "10000000000000"], "expected a number from 1 to 1,000"),
        (["run", "fig3", "--cores", "4096"], "--cores: no core 4096"),
        (["show", "fig3", "--onyl", "x"], "did you mean --only?"),
        (["show", "fig3", "--preset", "bset"], "did you mean best?"),
        (["status", "fig3", "--catalogue", "none.toml"], "none.toml: no such file"),
    ],
)
def test_mistakes(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
