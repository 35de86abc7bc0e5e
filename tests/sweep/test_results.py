"""`results/` and its page: what is copied, what is refused, and that docs/results.md is what results/ says."""

import json
from pathlib import Path

import pytest
from support.sweeps import make_run

from higl.cli import main
from higl.errors import ResultsError
from higl.sweep.page import make_page
from higl.sweep.results import add_run, keep_test, read_results

ROOT = Path(__file__).resolve().parents[2]


def test_a_result_holds_the_small_files_and_no_names_of_machines(tmp_path):
    run = make_run(tmp_path / "secret-place" / "run", [0.0, 0.6], seed=2)
    place = add_run(run, tmp_path / "results")
    assert place == tmp_path / "results" / "ant-maze-u-sparse" / "higl" / "seed-2"
    assert sorted(path.name for path in place.iterdir()) == ["config.toml", "eval.csv", "facts.json"]
    assert (place / "eval.csv").read_bytes() == (run / "eval.csv").read_bytes()
    facts = json.loads((place / "facts.json").read_text())
    assert (facts["status"], facts["step"], facts["steps"]) == ("finished", 10_000, 10_000)
    assert facts["packages"]["jax"]
    said = "".join(path.read_text() for path in place.iterdir())
    start = json.loads((run / "run.json").read_text())["starts"][0]
    assert "secret-place" not in said
    assert str(tmp_path) not in said
    assert start["host"] not in json.dumps({k: v for k, v in facts.items() if k != "packages"})
    assert "command" not in said
    assert "process" not in facts


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"algo": "hrac", "reward": "dense"}, "ant-maze-u-dense/hrac"),
        ({"preset": "paper"}, "ant-maze-u-sparse/higl-paper"),
        ({"landmarks__coverage": 60, "landmarks__novelty": 60}, "ant-maze-u-sparse/higl-coverage60-novelty60"),
        ({"high__relabel": True, "task": "pusher"}, "pusher-sparse/higl-relabel"),
    ],
)
def test_places(tmp_path, settings, place):
    run = make_run(tmp_path / "run", [1.0], **settings)
    assert add_run(run, tmp_path / "results") == tmp_path / "results" / place / "seed-0"


def test_unfinished_runs_are_taken_only_if_asked_for(tmp_path):
    run = make_run(tmp_path / "run", [0.2], "stopped")
    with pytest.raises(ResultsError, match="is stopped, not finished: --partial"):
        add_run(run, tmp_path / "results")
    add_run(run, tmp_path / "results", partial=True)
    assert "stopped" in make_page(tmp_path / "results")
    with pytest.raises(ResultsError, match="has no evaluations"):
        add_run(make_run(tmp_path / "empty", [], steps=10), tmp_path / "results")


def test_one_curve_has_one_setting_and_the_longer_run_stays(tmp_path):
    results = tmp_path / "results"
    add_run(make_run(tmp_path / "a", [0.2, 0.4]), results)
    with pytest.raises(ResultsError, match=r"same run with more steps \(10,000 and 5,000 here\)"):
        add_run(make_run(tmp_path / "b", [0.2]), results)
    other = make_run(tmp_path / "c", [0.2], seed=1, landmarks__shift=3.0)
    with pytest.raises(ResultsError, match=r"has other settings \(landmarks.shift\): give this run a --variant"):
        add_run(other, results, variant="")
    assert add_run(other, results, variant="far").parent.name == "higl-far"
    with pytest.raises(ResultsError, match="expected small letters"):
        add_run(other, results, variant="../far")
    add_run(make_run(tmp_path / "d", [0.2, 0.4, 0.6]), results)
    assert len(read_results(results)) == 2


def test_no_results_give_a_page_that_says_so(tmp_path):
    assert "There are no runs yet." in make_page(tmp_path / "none")
    (tmp_path / "results" / "notes").mkdir(parents=True)
    assert "There are no runs yet." in make_page(tmp_path / "results")


def test_the_page(tmp_path):
    results = tmp_path / "results"
    late = [0.0] * 10 + [1.0] * 10
    for seed, success in enumerate([late, late, [0.0] * 20]):
        add_run(make_run(tmp_path / f"higl{seed}", success, seed=seed), results)
    for seed in range(2):
        add_run(make_run(tmp_path / f"hrac{seed}", [0.0] * 15 + [1.0] * 5, seed=seed, algo="hrac"), results)
    page = make_page(results)
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.startswith("|")}
    higl = [cell.strip() for cell in rows["HIGL"].split("|")[1:-1]]
    assert higl[:4] == ["HIGL", "0, 1, 2", "100k", "66.7 ± 57.7%"]
    assert higl[6:8] == ["65k (2 of 3)", "75k (2 of 3)"]
    assert higl[8].startswith("65.1% at 1M (the paper)")
    assert "17.6% at 1M (the paper)" in rows["HRAC"]
    versus = [cell.strip() for cell in rows["Ant Maze U (sparse)"].split("|")[1:-1]]
    assert versus[:5] == ["Ant Maze U (sparse)", "100k", "3 and 2", "66.7%", "50.0%"]
    assert versus[5].startswith("67% (")
    assert page == make_page(results)


def test_seeds_that_went_on_have_rows_of_their_own(tmp_path):
    for seed, evaluations in enumerate([20, 12, 30]):
        success = [0.0] * 12 + [1.0] * (evaluations - 12)
        run = make_run(tmp_path / f"{seed}", success, "stopped", seed=seed, steps=200_000)
        add_run(run, tmp_path / "results", partial=True)
    rows = [
        line.split(" | ")[1:4] for line in make_page(tmp_path / "results").splitlines() if line.startswith("| HIGL")
    ]
    assert rows == [
        ["0, 1, 2", "60k", "0.0 ± 0.0%"],
        ["0, 2", "100k", "80.0 ± 0.0%"],
        ["2", "150k", "100.0%"],
    ]


def test_what_a_test_came_to_is_kept_and_told(tmp_path):
    run, results = make_run(tmp_path / "run", [0.5]), tmp_path / "results"
    tests = {"successes": 45, "episodes": 50, "success_interval": [0.79, 0.957]}
    keep_test(add_run(run, results), tests)
    assert [result.test for result in read_results(results)] == [tests]
    assert "| 45 of 50 (79% to 96%) |" in make_page(results)
    add_run(run, results)  # the same once more
    assert [result.test for result in read_results(results)] == [tests]
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"updated": "2030-01-01T00:00:00Z"}))  # perhaps another policy
    add_run(run, results)
    assert [result.test for result in read_results(results)] == [None]
    keep_test(add_run(run, results), tests)
    add_run(make_run(tmp_path / "longer", [0.5, 0.6]), results)
    assert [result.test for result in read_results(results)] == [None]


def test_the_page_in_docs_is_what_results_say():
    """If this fails: `higl results table`, and commit docs/results.md."""
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == make_page(ROOT / "results")


def test_commands(tmp_path, capsys):
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
