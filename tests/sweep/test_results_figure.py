"""Figures, claims and the short table, from a synthetic folder of results."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.results import FIGURE_3, make_entry, make_figure_3
from support.sweeps import make_run

from higl.cli import main
from higl.errors import SettingsError
from higl.figures.statistics import Smoothing
from higl.sweep.catalogue import read_catalogue
from higl.sweep.claims import findings, verdict
from higl.sweep.results import add_run, add_test
from higl.sweep.results_figure import digest, documented, draw_entries, entries_of, entry_panels, read_folders, runs_of
from higl.sweep.summary_table import BEGIN, END, make_table, with_table

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = read_catalogue()


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    return make_figure_3(tmp_path_factory.mktemp("figure3"))


@pytest.fixture(scope="module")
def folders(results):
    return read_folders(results)


# --- Figures --------------------------------------------------------------------------------------------------------


def test_figure_3_has_nine_panels_with_the_seeds_that_are_there(folders):
    panels = entry_panels(folders, CATALOGUE["fig3-best"], Smoothing(0), alone=True)
    assert len(panels) == 9
    for task, panel in zip(CATALOGUE["fig3-best"].tasks, panels, strict=True):
        stored = {key[:2]: algos for key, algos in FIGURE_3.items()}
        expected = stored.get((task.task, task.reward), {})
        if (task.task, task.reward) == ("ant-maze-w", "dense"):  # not run: HIGL's map learns the same from any reward
            expected = {"higl": stored["ant-maze-w", "sparse"]["higl"]}
        seeds = {curve.label: curve.seeds for curve in panel.curves}
        assert seeds == {algo.upper(): count for algo, (count, *_) in expected.items()}
        assert panel.is_empty == (not expected)
        assert panel.missing == tuple(name for name in ("HIGL", "HRAC") if name.lower() not in expected)
        assert panel.limits == (0.0, 1.0)


def test_panels_have_the_numbers_of_the_paper_and_else_those_of_others(folders):
    panels = entry_panels(folders, CATALOGUE["fig3-best"], Smoothing(0), alone=True)
    texts = {panel.title: [reference.text for reference in panel.references] for panel in panels if panel.references}
    assert texts == {
        "Ant Maze U (sparse)": ["HIGL 65.1% at 1M", "HRAC 17.6% at 1M"],
        "Ant Maze W (sparse)": ["HRAC 89% at 5M"],
    }


def test_the_drawn_figure_says_which_panels_and_curves_have_no_runs(folders):
    figure = draw_entries(folders, entries_of(["fig3-best"]))
    texts = {axes.get_title(loc="left"): {text.get_text() for text in axes.texts} for axes in figure.axes}
    assert [title for title, said in texts.items() if "no data yet" in said] == ["Pusher (sparse)"]
    assert [title for title, said in texts.items() if "HRAC: no runs yet" in said] == [
        "Ant Maze W (dense)",
        "Ant Maze U Stochastic (sparse)",
    ]
    assert {axes.get_ylim() for axes in figure.axes} == {(-0.02, 1.04)}
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["HIGL", "HRAC"]


def test_ablations_side_by_side_name_their_variants(tmp_path):
    folders = read_folders(make_entry(tmp_path, "fig4a", {"M_cov 0": 0.2, "M_cov 20": 0.8}))
    figure = draw_entries(folders, entries_of(["fig4a", "fig4b", "fig4c"]))
    legends = [axes.get_legend() for axes in figure.axes]
    assert legends[2] is None
    names = [[text.get_text() for text in legend.get_texts()] for legend in legends[:2]]
    # 20 + 20 is a run of both figures.
    assert names[0] == ["M_cov 0", "M_cov 20", "M_cov 10: no runs yet"]
    assert names[1] == ["M_nov 20", "M_nov 0: no runs yet", "M_nov 10: no runs yet"]
    assert figure.axes[0].get_title(loc="left") == "Coverage-based landmarks\nAnt Maze U (dense)"


def test_runs_with_the_sparse_reward_do_not_stand_in_for_those_that_learn_from_rewards(folders):
    entry = CATALOGUE["fig3-best"]
    [task] = [each for each in entry.tasks if (each.task, each.reward) == ("ant-maze-w", "dense")]
    found = {variant.name: len(runs_of(folders, entry, task, variant)) for variant in entry.variants}
    assert found == {"HIGL": 1, "HRAC": 0}
    paper = replace(entry, preset="paper")
    assert not any(runs_of(folders, paper, task, variant) for variant in paper.variants)


def test_runs_of_another_preset_are_not_mixed_in(tmp_path):
    results = make_entry(tmp_path, "fig4a", {"M_cov 20": 0.8})
    assert list(documented(read_folders(results))) == ["figure3-paper", "figure4", "figure5"]


def test_landmark_maps_cannot_be_drawn_from_results():
    with pytest.raises(SettingsError, match="fig6 shows landmark maps"):
        entries_of(["fig6"])


def test_pictures_of_the_documentation_are_written_and_checked(tmp_path, capsys):
    results = make_entry(tmp_path, "fig4c", {"raw landmarks": 0.5}, seeds=1)
    words = ["results", "figure", "--results", str(results), "--images", str(tmp_path / "images")]
    assert main([*words, "--check"]) == 1
    assert main(words) == 0
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == ["figure4.png"]
    assert main([*words, "--check"]) == 0
    make_entry(tmp_path, "fig4c", {"pseudo-landmarks": 0.5}, seeds=1)
    capsys.readouterr()
    assert main([*words, "--check"]) == 1
    assert "figure3-paper.png is not up to date" in capsys.readouterr().err
    out = tmp_path / "one.svg"
    assert main(["results", "figure", "fig4c", "--results", str(results), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 2 runs\n"
    assert main(["results", "figure", "-o", str(out), "--results", str(results)]) == 2
    assert main(["results", "figure", "fig44c", "--results", str(results)]) == 2


def test_a_digest_depends_on_the_evaluations(tmp_path):
    results = make_entry(tmp_path, "fig4c", {"raw landmarks": 0.5}, seeds=1)
    entries = entries_of(["fig4c"])
    before = digest(read_folders(results), entries)
    assert before == digest(read_folders(results), entries)
    [file] = results.glob("*/*/*/eval.csv")
    file.write_text(file.read_text().replace("0.4", "0.6"))
    assert before != digest(read_folders(results), entries)


def test_pictures_in_docs_are_up_to_date():
    """If this fails, run `higl results figure` and commit docs/images."""
    folders = ["--results", str(ROOT / "results"), "--images", str(ROOT / "docs" / "images")]
    assert main(["results", "figure", "--check", *folders]) == 0


# --- Claims ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"a": [0.5, 0.6], "b": [0.1, 0.4]}, "holds"),
        ({"a": [0.5], "b": [0.1, 0.4]}, "holds, with one seed"),
        ({"a": [0.3, 0.6], "b": [0.1, 0.4]}, "unclear: seeds of a and b overlap"),
        ({"a": [0.1], "b": [0.1]}, "**does not hold**: a is not ahead of b"),
        ({"a": [0.1], "b": []}, "not run yet: b"),
    ],
)
def test_verdicts(scores, expected):
    assert verdict(scores, [("a", "b")]) == expected


def test_findings_compare_areas_up_to_the_shortest_run(tmp_path):
    results = make_entry(tmp_path, "fig4a", {"M_cov 0": 0.9})
    success = [0.0] * 10 + [1.0] * 10  # faster than the other, which rises after 30 evaluations, but shorter
    run = make_run(tmp_path / "short", success, preset="paper", reward="dense", landmarks__coverage=10)
    add_run(run, results)
    found = {finding.entry.name: finding for finding in findings(CATALOGUE, read_folders(results))}
    assert list(found) == ["fig4a"]  # each other figure has one of these variants or none
    assert found["fig4a"].steps == 100_000
    assert found["fig4a"].verdict == "holds, with one seed; not run yet: M_cov 20"
    assert found["fig4a"].scores["M_cov 10"] == pytest.approx([0.5], abs=0.03)


# --- The short table ------------------------------------------------------------------------------------------------


def rows(table: str) -> dict[str, list[str]]:
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {line[0]: line[1:] for line in lines}


def test_the_short_table_has_a_row_for_each_panel(results):
    found = rows(make_table(results))
    assert len(found) == 11
    assert found["Pusher (sparse)"] == ["", "no runs yet", "", "no runs yet", ""]
    assert found["Ant Maze W (sparse)"][4] == "HRAC 89% at 5M (HRAC's own page, a maze like ours)"
    assert found["Ant Maze U (sparse)"][4] == "HIGL 65.1% at 1M; HRAC 17.6% at 1M"
    assert found["Ant Maze U (sparse)"][1].endswith(", 4 seeds x 300k")
    dense, sparse = found["Ant Maze W (dense)"], found["Ant Maze W (sparse)"]
    assert dense[:3] == [sparse[0], f"{sparse[1]}, as sparse", ""]


def test_cells_of_the_short_table(tmp_path):
    for seed, success in enumerate([[0.0] * 10 + [1.0] * 10, [0.0] * 20]):
        place = add_run(make_run(tmp_path / f"{seed}", success, seed=seed), tmp_path / "results")
        add_test(place, {"episodes": 100, "successes": 90, "successes_at_end": 80})
    solved, success, test, hrac, _ = rows(make_table(tmp_path / "results"))["Ant Maze U (sparse)"]
    assert solved == "never (1 of 2)"  # the median of 75k and never
    assert success == "**50%** (0 to 100), 2 seeds x 100k"
    assert (test, hrac) == ("180, 160 of 200", "no runs yet")


def test_the_short_table_replaces_only_itself():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_table(page, "new\n") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert with_table(with_table(page, "new\n"), "new\n") == with_table(page, "new\n")
    with pytest.raises(SettingsError, match="no place for the table"):
        with_table("a page", "new\n")


def test_the_table_in_the_readme_is_up_to_date():
    """If this fails, run `higl results table` and commit README.md."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(page, make_table(ROOT / "results")) == page
