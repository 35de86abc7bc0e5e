"""The page of results: its tables, and that docs/results.md is up to date."""

from pathlib import Path

from support.sweeps import make_run

from higl.sweep.results import add_run, add_test
from higl.sweep.results_page import make_page

ROOT = Path(__file__).resolve().parents[2]


def test_page_without_results(tmp_path):
    assert "There are no runs yet." in make_page(tmp_path / "none")
    (tmp_path / "results" / "notes").mkdir(parents=True)
    assert "There are no runs yet." in make_page(tmp_path / "results")


def table(page: str) -> dict[str, list[str]]:
    """Return the cells of every table row by the first cell."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    return {row[0]: row for row in rows}


def test_tables_of_a_task_and_of_the_comparison(tmp_path):
    results = tmp_path / "results"
    late = [0.0] * 10 + [1.0] * 10
    for seed, success in enumerate([late, late, [0.0] * 20]):
        add_run(make_run(tmp_path / f"higl{seed}", success, seed=seed), results)
    hrac = [make_run(tmp_path / f"hrac{seed}", [0.0] * 15 + [1.0] * 5, seed=seed, algo="hrac") for seed in range(3)]
    for run in hrac[:2]:
        add_run(run, results)
    assert table(make_page(results))["Ant Maze U (sparse)"][5] == "-"  # two seeds are too few
    add_run(hrac[2], results)
    page = make_page(results)
    rows = table(page)
    higl = rows["HIGL"]
    assert higl[:5] == ["HIGL", "0, 1, 2", "100k", "66.7 ± 57.7%", "33.3%"]
    assert higl[7:9] == ["65k (2 of 3)", "75k (2 of 3)"]
    assert higl[9].startswith("HIGL 65.1% at 1M (the paper)")
    assert rows["HRAC"][9] == "HRAC 17.6% at 1M (the paper)"
    versus = rows["Ant Maze U (sparse)"]
    assert versus[:5] == ["Ant Maze U (sparse)", "100k", "3 and 3", "66.7%", "50.0%"]
    assert versus[5].startswith("67% (")
    assert "Over the" not in page  # there is only one task
    assert page == make_page(results)


def test_longer_seeds_have_rows_of_their_own(tmp_path):
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


def test_comparison_over_several_tasks(tmp_path):
    for task in ("ant-maze-u", "ant-maze-w"):
        for algo, success in (("higl", 1.0), ("hrac", 0.0)):
            for seed in range(3):
                run = make_run(tmp_path / f"{task}-{algo}-{seed}", [success] * 10, task=task, algo=algo, seed=seed)
                add_run(run, tmp_path / "results")
    text = " ".join(make_page(tmp_path / "results").split())
    assert "Over the 2 tasks with as many seeds, with equal weights, the probability of improvement is 100%" in text
    assert "the IQM is 100% (100% to 100%) for HIGL and 0% (0% to 0%) for HRAC." in text


def test_table_of_a_sweep_without_a_claim(tmp_path):
    success = {371: [0.0] * 5 + [1.0] * 15, 372: [0.0] * 15 + [1.0] * 15, 7: [1.0] * 20}  # 7 is no seed of the sweep
    for seed, curve in success.items():
        add_run(make_run(tmp_path / f"{seed}", curve, seed=seed, steps=200_000), tmp_path / "results", partial=True)
    assert "one of their ingredients" not in make_page(tmp_path / "results")
    both = {"low.exchange": 0.0, "high.random_steps": 0}
    without = make_run(tmp_path / "without", [0.0] * 20, seed=371, steps=200_000, **both)
    add_run(without, tmp_path / "results", partial=True)
    assert "one of their ingredients" not in make_page(tmp_path / "results")  # two things differ
    run = make_run(tmp_path / "run", [0.0] * 12, "stopped", seed=371, steps=200_000, **{"low.exchange": 0.0})
    add_run(run, tmp_path / "results", partial=True)
    page = make_page(tmp_path / "results")
    part = page[page.index("one of their ingredients") :]
    assert "beside HIGL over the same steps" in part
    rows = table(part[: part.index("## Ant Maze U")])
    assert rows["HIGL"][1:] == ["371, 372", "100k", "72%, 22%", "", "50k, 100k", "100%, 50%"]
    assert rows["no exchanged subgoals"][1:] == ["371", "60k", "0%", "54%, 0%", "∞", "0%"]


def test_row_of_a_run(tmp_path):
    run = make_run(tmp_path / "run", [0.4, 0.6], "stopped", steps=30_000)
    place = add_run(run, tmp_path / "results", partial=True)
    add_test(place, {"successes": 45, "episodes": 50, "success_interval": [0.79, 0.957]})
    row = table(make_page(tmp_path / "results"))["`ant-maze-u-sparse/higl/seed-0`"]
    assert row[1:7] == ["stopped", "10k of 30k", "50.0%", "25.0%", "60%", "45 of 50 (79% to 96%); at the end -"]


def test_success_at_the_end_is_unknown_for_older_runs(tmp_path):
    place = add_run(make_run(tmp_path / "run", [0.4, 0.6]), tmp_path / "results")
    add_test(place, {"successes": 4, "successes_at_end": 3, "episodes": 5, "success_interval": [0.4, 0.9]})
    row = table(make_page(tmp_path / "results"))["`ant-maze-u-sparse/higl/seed-0`"]
    assert row[4:7] == ["25.0%", "60%", "4 of 5 (40% to 90%); at the end 3"]
    lines = (line.split(",") for line in (place / "eval.csv").read_text().splitlines())
    (place / "eval.csv").write_text("".join(",".join(line[:4] + line[5:]) + "\n" for line in lines))
    rows = table(make_page(tmp_path / "results"))
    assert rows["`ant-maze-u-sparse/higl/seed-0`"][3:5] == ["50.0%", "-"]
    assert rows["HIGL"][3:5] == ["50.0%", "-"]


def test_page_in_docs_is_up_to_date():
    """If this fails, run `higl results table` and commit docs/results.md."""
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == make_page(ROOT / "results")
