"""`results/`: what is copied from a run, what is rejected, and what is read back."""

import json
import re
from pathlib import Path

import pytest
from support.sweeps import make_run

from higl.errors import ResultsError
from higl.run.naming import algorithm_name
from higl.sweep.aggregate import final_success
from higl.sweep.results import RESULT_FORMAT, add_run, add_test, read_result, read_results
from higl.sweep.results_page import SeedGroup, make_page

ROOT = Path(__file__).resolve().parents[2]


def test_result_holds_small_files_and_identifies_no_machine(tmp_path):
    run = make_run(tmp_path / "secret-place" / "run", [0.0, 0.6], seed=2)
    place = add_run(run, tmp_path / "results")
    assert place == tmp_path / "results" / "ant-maze-u-sparse" / "higl" / "seed-2"
    assert sorted(path.name for path in place.iterdir()) == ["config.toml", "eval.csv", "facts.json"]
    assert (place / "eval.csv").read_bytes() == (run / "eval.csv").read_bytes()
    facts = json.loads((place / "facts.json").read_text())
    assert (facts["status"], facts["step"], facts["steps"]) == ("finished", 10_000, 10_000)
    assert facts["packages"]["jax"]
    text = "".join(path.read_text() for path in place.iterdir())
    start = json.loads((run / "run.json").read_text())["starts"][0]
    assert "secret-place" not in text
    assert str(tmp_path) not in text
    assert start["host"] not in json.dumps({k: v for k, v in facts.items() if k != "packages"})
    assert "command" not in text
    assert "process" not in facts


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"algo": "hrac", "reward": "dense"}, "ant-maze-u-dense/hrac"),
        ({"preset": "paper"}, "ant-maze-u-sparse/higl-paper"),
        ({"landmarks__coverage": 60, "landmarks__novelty": 60}, "ant-maze-u-sparse/higl-coverage60-novelty60"),
        ({"high__relabel": True, "task": "pusher"}, "pusher-sparse/higl-relabel"),
        ({"goal_unit": (1.2,), "evaluation__every": 500}, "ant-maze-u-sparse/higl"),  # derived
        ({"goal_unit": (1.2,), "preset": "paper"}, "ant-maze-u-sparse/higl-paper-goal-unit1.2"),
    ],
)
def test_folder_is_named_after_task_algorithm_and_variant(tmp_path, settings, place):
    run = make_run(tmp_path / "run", [1.0], **settings)
    assert add_run(run, tmp_path / "results") == tmp_path / "results" / place / "seed-0"


def test_runs_with_another_test_environment_are_results_of_their_own(tmp_path):
    results = tmp_path / "results"
    for name, test_env in (("own", None), ("other", "mine:Far-v0")):
        run = make_run(tmp_path / name, [0.5])
        facts = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(facts | {"test_env": test_env}))
        add_run(run, results)
    assert [(result.task, result.test_env) for result in read_results(results)] == [
        ("ant-maze-u-sparse", None),
        ("ant-maze-u-sparse-tested-in-mine-Far-v0", "mine:Far-v0"),
    ]
    page = make_page(results)
    own, other = (
        page.split(f"## Ant Maze U (sparse){title}\n")[1].split("\n## ")[0] for title in ("", ", tested in mine:Far-v0")
    )
    assert "65.1%" in own, "what the paper reports"
    assert "65.1%" not in other


def test_unfinished_runs_need_partial(tmp_path):
    run = make_run(tmp_path / "run", [0.2], "stopped")
    with pytest.raises(ResultsError, match="is stopped, not finished: use --partial"):
        add_run(run, tmp_path / "results")
    add_run(run, tmp_path / "results", partial=True)
    [result] = read_results(tmp_path / "results")
    assert (result.facts["status"], result.curve.last, final_success(result.curve)) == ("stopped", 5_000, 0.2)
    with pytest.raises(ResultsError, match="has no evaluations"):
        add_run(make_run(tmp_path / "empty", [], steps=10), tmp_path / "results")


def test_seeds_of_a_group_may_be_evaluated_at_other_steps(tmp_path):
    """How often, may depend on the speed of the machine."""
    for seed, every in enumerate([5_000, 25_000]):
        add_run(make_run(tmp_path / f"run-{seed}", [0.2], seed=seed, evaluation__every=every), tmp_path / "results")
    assert len(read_results(tmp_path / "results")) == 2


def test_seeds_of_a_group_share_their_settings_and_the_longer_run_stays(tmp_path):
    results = tmp_path / "results"
    add_run(make_run(tmp_path / "a", [0.2, 0.4]), results)
    with pytest.raises(ResultsError, match="already has 10,000 steps of this run, and 5,000 are fewer"):
        add_run(make_run(tmp_path / "b", [0.2]), results)
    other = make_run(tmp_path / "c", [0.2], seed=1, landmarks__shift=3.0)
    with pytest.raises(ResultsError, match=r"has other settings \(landmarks.shift\): give this run a --variant"):
        add_run(other, results, variant="")
    assert add_run(other, results, variant="far").parent.name == "higl-far"
    with pytest.raises(ResultsError, match="expected lower-case letters"):
        add_run(other, results, variant="../far")
    add_run(make_run(tmp_path / "d", [0.2, 0.4, 0.6]), results)
    assert len(read_results(results)) == 2


def test_test_summary_stays_as_long_as_the_policy_is_the_same(tmp_path):
    run, results = make_run(tmp_path / "run", [0.5]), tmp_path / "results"
    tests = {"successes": 45, "episodes": 50, "success_interval": [0.79, 0.957]}
    add_test(add_run(run, results), tests)
    assert [result.test for result in read_results(results)] == [tests]
    add_run(run, results)  # nothing has changed
    assert [result.test for result in read_results(results)] == [tests]
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(
        json.dumps(facts | {"updated": "2030-01-01T00:00:00Z"})
    )  # perhaps with another policy
    add_run(run, results)
    assert [result.test for result in read_results(results)] == [None]
    add_test(add_run(run, results), tests)
    add_run(make_run(tmp_path / "longer", [0.5, 0.6]), results)
    assert [result.test for result in read_results(results)] == [None]


def test_committed_results_are_named_after_their_settings():
    """If this fails, a preset changed: rename (`-earlier`), rerun or remove the results of its earlier values."""
    found = read_results(ROOT / "results")
    assert found
    for result in found:
        before = result.facts.get("before")
        name = algorithm_name(result.config, derived=True)
        if before is not None:  # it started from another run
            assert before["goal"] == "none"
            name = f"{name}-after-no-goal"
        # A derived setting is named only where it was given by hand, with `results add --variant`.
        by_hand = f"{name}-action-share{result.config.low.action_share}"
        assert result.path.parent.name.removesuffix("-earlier") in (name, by_hand), result.path


def test_results_that_the_documentation_cites_exist():
    cited = set()
    for path in [*(ROOT / "docs").glob("*.md"), *(ROOT / "src" / "higl" / "settings" / "presets").glob("*.toml")]:
        cited |= set(
            re.findall(r"(?<!benchmarks/)results/[a-z0-9][a-z0-9.+-]*(?:/[a-z0-9][a-z0-9.+-]*)*", path.read_text())
        )
    assert "results/ant-maze-u-sparse" in cited
    assert [name for name in sorted(cited) if not (ROOT / name.rstrip(".")).exists()] == []


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("config.toml", "seed = 0", "seed = 4", "its config.toml is for ant-maze-u-sparse, seed 4"),
        ("config.toml", 'task = "ant-maze-u"', 'task = "ant-maze-w"', "its config.toml is for ant-maze-w-sparse"),
        ("config.toml", 'algo = "higl"', 'algo = "hrac"', "its config.toml is for hrac"),
        ("config.toml", "seed = 0", "seed =", "config.toml"),
        ("facts.json", f'"format": {RESULT_FORMAT}', '"format": 1', f"has format 1, expected {RESULT_FORMAT}"),
        ("facts.json", "{", "", "facts|Extra data|Expecting"),
        ("eval.csv", "5000,", "five,", "eval.csv is damaged"),
    ],
)
def test_results_that_are_damaged_or_misplaced_are_rejected(tmp_path, file, before, after, message):
    place = add_run(make_run(tmp_path / "run", [0.5]), tmp_path / "results")
    text = (place / file).read_text()
    assert before in text
    (place / file).write_text(text.replace(before, after, 1))
    with pytest.raises(ResultsError, match=message) as error:
        read_result(place)
    assert str(place) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_that_began_with_what_another_had_learned_is_another_variant(tmp_path):
    for goal, variant in (("none", "after-no-goal"), ("given", "after-another")):
        run = make_run(tmp_path / variant, [0.5])
        facts = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(facts | {"before": {"steps": 5_000, "goal": goal}}))
        result = read_result(add_run(run, tmp_path / "results"))
        assert (result.variant, result.facts["before"]["steps"]) == (variant, 5_000)


def test_how_much_of_a_maze_was_visited_is_kept_and_shown(tmp_path):
    free = {"goal": "none", "landmarks__graph": "walked", "task": "point-maze"}
    run = make_run(tmp_path / "run", [0.0, 1.0], **free)
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"step": 10000, "episode": 3, "time": 2.0, "explored_share": 0.75}\n')
    result = read_result(add_run(run, tmp_path / "results"))
    assert result.facts["explored_share"] == 0.75
    assert SeedGroup((result,)).label.endswith("(zero-shot, 75% of the maze visited)")
    plain = read_result(add_run(make_run(tmp_path / "plain", [0.0]), tmp_path / "results"))
    assert plain.facts["explored_share"] is None
    assert SeedGroup((plain,)).label == "HIGL"
