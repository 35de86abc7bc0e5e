"""`higl card`: a folder for a model hub, whose card states what was measured and refers to what is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from support import tiny
from support.policies import give_policy
from support.reach import SMALL
from support.synthetic import synthetic_run

import higl
from higl.cli import main
from higl.pretrained import pretrained_run
from higl.settings.layers import read_settings

EPISODES = 1  # more would start processes


def runs(folder: Path, count: int = 1, **options) -> list[Path]:
    made = [synthetic_run(folder / f"run-{seed}", "pusher", seed=seed, snapshots=2, **options) for seed in range(count)]
    for run in made:
        give_policy(run)
    return made


def card(out: Path, *words: object, episodes: int = EPISODES) -> int:
    return main(["card", *map(str, words), "-o", str(out), "--episodes", str(episodes), "--flat"])


def read_card(folder: Path) -> tuple[dict, str]:
    """Return the metadata and the text of a card."""
    _, metadata, text = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(metadata), text


@pytest.fixture(scope="module")
def pusher(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cards") / "pusher"
    assert card(folder, "pusher", "--pretrained") == 0
    return folder


def test_metadata_and_text_state_what_eval_measures(pusher, capsys):
    assert main(["eval", "pusher", "--pretrained", "--episodes", str(EPISODES), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    metadata, text = read_card(pusher)
    assert metadata["library_name"] == "higl"
    assert metadata["license"] == "mit"
    assert {"reinforcement-learning", "higl", "pusher"} <= set(metadata["tags"])
    (result,) = metadata["model-index"][0]["results"]
    assert result["dataset"]["name"] == "pusher"
    values = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert values == {"success_rate": measured["success"], "mean_reward": round(measured["return"], 2)}
    low, high = (f"{100 * bound:.1f}%" for bound in measured["success_interval"])
    assert f"{EPISODES} test episode (95% interval {low} to {high})" in text
    assert "7 numbers, from -2 to 2" in text
    assert "higl export" not in text  # it walks a map
    assert "--trust" not in text
    assert "\n\n\n" not in text


def test_the_folder_is_complete_and_the_card_refers_to_its_files(pusher):
    names = {path.name for path in pusher.iterdir()}
    assert names == {
        "README.md",
        "config.toml",
        "curve.png",
        "eval.csv",
        "policy.safetensors",
        "replay.mp4",
        "run.json",
    }
    text = (pusher / "README.md").read_text()
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert set(links) == {"curve.png", "replay.mp4"}
    assert higl.load_policy(pusher).config == higl.load_policy("pusher").config
    assert read_settings(pusher / "config.toml") == read_settings(pretrained_run("pusher") / "config.toml")


def test_a_run_with_snapshots_has_a_landmark_map_and_other_seeds_a_table(tmp_path):
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "README.md").write_text("an earlier card")
    assert card(tmp_path / "card", *runs(tmp_path, 2), "--license", "apache-2.0") == 0
    metadata, text = read_card(tmp_path / "card")
    assert metadata["license"] == "apache-2.0"
    assert "![Landmark maps](landmarks.png)" in text
    assert "higl export PATH_OF_THIS_FOLDER " in text  # these policies are two networks
    assert re.findall(r"^\| (\d) \| [\d,]+ \| [\d.]+% \| ", text, re.MULTILINE) == ["0", "1"]
    assert (tmp_path / "card" / "landmarks.png").stat().st_size > 10_000
    facts = json.loads((tmp_path / "card" / "run.json").read_text())
    assert not {"host", "command", "process", "system"} & facts["starts"][-1].keys()


def test_a_policy_that_walks_a_map_and_a_task_with_a_module(tmp_path):
    run, folder = tmp_path / "run", tmp_path / "card"
    words = tiny.flags(steps=40, landmarks__graph="walked")
    assert main(["train", *map(str, words), "--out", str(run)]) == 0
    assert card(folder, run, "--trust") == 0
    _, text = read_card(folder)
    policy = higl.load_policy(folder)
    assert "a map of walked ways proposes a subgoal" in text
    assert "higl export" not in text
    assert re.findall(r"^higl (\w+) PATH_OF_THIS_FOLDER --trust ", text, re.MULTILINE) == ["eval", "render"]
    assert "imports the module `support.tiny`" in text
    assert f"| task | `{tiny.TASK}`, its own reward |" in text
    numbers = sum(array.size for layer in policy.low_actor for array in layer)
    assert f"hidden layers 8, 8 (low level); {numbers} numbers |" in text
    assert policy.chart is not None
    assert f"| map | {len(policy.chart.points)} landmark" in text
    assert "\n\n\n" not in text


@pytest.fixture(scope="module")
def in_python(tmp_path_factory) -> Path:
    """Return the folder of a run that was trained in Python on an environment object."""
    run = tmp_path_factory.mktemp("python") / "run"
    higl.HIGL(lambda: tiny.TinyEnv(), verbose=0, **SMALL).learn(40, log_dir=run)
    return run


def test_a_run_on_an_object_has_a_card_if_its_environment_is_named(in_python, tmp_path, capsys):
    assert card(tmp_path / "none", in_python) == 2
    error = capsys.readouterr().err
    assert "trained in Python on an environment object" in error
    assert "--env module:Id" in error
    folder = tmp_path / "card"
    assert card(folder, in_python, "--env", tiny.TASK) == 0
    metadata, text = read_card(folder)
    assert metadata["model-index"][0]["results"][0]["dataset"]["name"] == tiny.TASK
    assert f"`higl train {tiny.TASK} --config config.toml` trains it again" in text
    assert (folder / "replay.mp4").exists()
    capsys.readouterr()
    assert main(["eval", str(folder), "--trust", "--episodes", "1"]) == 0
    assert f"TinyEnv, tested in {tiny.TASK}" in capsys.readouterr().out
    again = ["train", tiny.TASK, "--config", str(folder / "config.toml"), "--out", str(tmp_path / "again")]
    assert main(again) == 0


def test_a_card_measures_where_the_run_was_tested(tmp_path, capsys):
    (run,) = runs(tmp_path)
    assert card(tmp_path / "card", run, "--env", "reacher") == 2
    assert "was tested in pusher, and so is its card: leave out --env" in capsys.readouterr().err
    assert not (tmp_path / "card").exists()


@pytest.mark.parametrize(
    ("words", "out", "message"),
    [
        (["RUNS/run-0", "RUNS/other"], "card", "these runs differ in high.period"),
        (["RUNS/run-0", "RUNS/elsewhere"], "card", "these runs differ in test_env"),
        (["RUNS/run-0"], "RUNS", "exists and is no earlier card: name a new folder"),
        (["RUNS/run-0", "--episodes", "0"], "card", "--episodes must be 1 or more"),
        (["RUNS/run-0", "--seed", str(2**40)], "card", "--seed 1099511627776: expected a number"),
        (["my-task", "--pretrained"], "card", "no trained policy for 'my-task' comes with higl"),
        (["ant-maze-u", "pusher", "--pretrained"], "card", "--pretrained takes one task"),
        (["RUNS/nowhere"], "card", "does not exist"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(words, out, message, tmp_path, capsys):
    folder = tmp_path / "runs"
    runs(folder)
    other = synthetic_run(folder / "other", "pusher", seed=1, snapshots=1)
    settings = (other / "config.toml").read_text()
    (other / "config.toml").write_text(re.sub(r"(?m)^period = \d+", "period = 7", settings))
    give_policy(other)
    give_policy(synthetic_run(folder / "elsewhere", "pusher", seed=1, snapshots=1, facts={"test_env": "reacher"}))
    place = folder if out == "RUNS" else tmp_path / out
    words = [word.replace("RUNS", str(folder)) for word in words]
    assert main(["card", *words, "-o", str(place)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (place / "README.md").exists()


def test_the_run_itself_is_not_overwritten(tmp_path, capsys):
    (run,) = runs(tmp_path)
    (run / "README.md").write_text("notes")
    assert card(run, run) == 2
    assert "is the run itself" in capsys.readouterr().err
    assert (run / "README.md").read_text() == "notes"
