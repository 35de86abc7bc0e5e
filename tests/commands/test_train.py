"""`higl train`: help, new runs, and folders that already hold something."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import tiny
from support.commands import assert_same_run, finished_run, line_count, tell, wait_for
from support.tiny import higl, start

from higl.commands.command import agrees
from higl.commands.train import default_folder
from higl.envs.make import make_env
from higl.run.folder import RunFolder
from higl.run.naming import run_name
from higl.run.reading import read_config, read_facts
from higl.settings.config import Config
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.layers import apply, setting_types
from higl.settings.presets import is_derivable, preset


@pytest.mark.parametrize(("task", "algo", "family"), [("point-maze", "hrac", "best"), ("pusher", "higl", "paper")])
def test_help_of_train_shows_the_presets_values(capsys, task, algo, family):
    code, out, _ = tell(capsys, "train", task, "--algo", algo, "--help", "--preset", family)
    flat = " ".join(out.split())
    assert code == 0
    assert "usage: higl train TASK [OPTION ...]" in flat
    text = r"(?:(?! --)[^()])*"  # up to the next flag
    shown = dict(re.findall(rf"(--[a-z.-]+) \S+ [A-Z]{text}(?:\([^()]*\){text})*?\(default: ([^()]*)\)", flat))
    config = preset(task, algo, family)
    assert shown["--algo"] == algo
    assert shown["--preset"] == family
    assert shown["--landmarks.coverage"] == str(config.landmarks.coverage)
    assert shown["--adjacency.degree"] == ("derived" if family == "best" else str(config.adjacency.degree))
    assert shown["--high.period"] == ("derived" if family == "best" else "5")
    assert float(shown["--landmarks.cutoff"]) == config.landmarks.cutoff
    assert set(setting_types(Config)) <= {"task"} | {
        name[2:].replace("-", "_") for name in re.findall(r"--[a-z.-]+", flat)
    }


def test_help_of_train_says_what_is_derived(capsys):
    """With a map, settings of networks of the high level are not."""
    code, out, _ = tell(capsys, "train", "ant-maze-u", "--help")
    flat = " ".join(out.split())
    assert code == 0
    expected = {name for name in setting_types(Config) if is_derivable(name, preset("ant-maze-u"))}
    assert {"goal_unit", "low.angles", "high.period"} <= expected
    assert "high.random_steps" not in expected
    for name in ("goal-unit", "low.angles", "high.period", "evaluation.every"):
        assert re.search(rf"--{re.escape(name)} [^-].*?\(default: derived\)", flat), name
    assert flat.count("(default: derived)") == len(expected)
    _, out, _ = tell(capsys, "train", "ant-maze-u", "--help", "--high.period", "7")
    assert out.count("derived)") == len(expected) - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import not_a_package_anywhere", "needs a package that is not installed: No module named 'not_a_package_any"),
        ("x = ", "importing 'mine' raised SyntaxError"),
        ("", "unknown task 'mine:Id-v0'"),
    ],
)
def test_a_module_that_cannot_be_used(tmp_path, text, expected):
    (tmp_path / "mine.py").write_text(text)
    result = higl("train", "mine:Id-v0", cwd=tmp_path)
    assert (result.returncode, result.stdout.count("\n")) == (2, 1)
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1
    assert {place.name for place in tmp_path.iterdir()} <= {"mine.py", "__pycache__"}


def test_a_file_where_a_run_should_go(capsys, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    code, _, err = tell(capsys, "train", "point-maze", "--out", str(file))
    assert code == 2
    assert "is a file; a run needs a folder" in err
    assert file.read_text() == "mine"


def test_a_module_in_the_working_folder_is_found(tmp_path):
    shutil.copy(tiny.__file__, tmp_path / "own_module.py")
    script = (
        "import sys; from higl.envs.make import make_env; from higl.envs.trust import import_module_of; "
        "assert '' not in sys.path; task = 'own_module:tests/Tiny-v0'; import_module_of(task); "
        "print(make_env(task).observation_space['observation'].shape)"
    )
    # -P, as the installed command: the folder it is called in is not searched.
    command = [sys.executable, "-P", "-c", script]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout == "(3,)\n"


SPY = """
import builtins, sys
from higl.cli import main
def spy(*words, **options):
    heavy = {"jax", "numpy", "gymnasium"} & set(sys.modules)
    sys.stdout.write(f"{words[0]} | {sorted(heavy)}")
    sys.stdout.flush()
    raise SystemExit(0)
builtins.print = spy
main(sys.argv[1:])
"""


@pytest.mark.parametrize("words", [("train", "point-maze", "--steps", 1000, "--out", "new"), ("resume", "run")])
def test_the_first_line_comes_before_anything_slow(tmp_path, words):
    if words[0] == "resume":
        run = finished_run(tmp_path / "run")
        (run / "run.json").write_text((run / "run.json").read_text().replace("finished", "stopped"))
    command = [sys.executable, "-c", SPY, *map(str, words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    line, _, heavy = done.stdout.partition(" | ")
    assert line.startswith("point-maze (higl, sparse, seed 0): ")
    assert line.endswith("; loading JAX and the environment")
    assert heavy == "[]"


def test_default_folder():
    assert default_folder(preset("ant-maze-u", "hrac")) == Path("runs/ant-maze-u-sparse-hrac-0")
    assert default_folder(preset("some/Id-v0")) == Path("runs/some-Id-v0-sparse-higl-0")
    changed = apply(preset("ant-maze-u"), {"landmarks.coverage": 10, "steps": 500})
    assert default_folder(changed) == Path("runs/ant-maze-u-sparse-higl-coverage10-0")  # else it would take fig3's
    assert default_folder(preset("module:some/Id-v0")) == Path("runs/module-some-Id-v0-sparse-higl-0")


def test_device_that_is_not_there(tmp_path):
    done = higl("train", *tiny.flags(), "--device", "gpu", "--out", tmp_path / "run")
    if done.returncode == 0:
        pytest.skip("there is a GPU")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("higl train: --device gpu: JAX finds none here")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("answer", "code"), [("", True), ("y", True), ("n", False)])
def test_a_terminal_is_asked(monkeypatch, answer, code):
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    assert agrees("Continue it?", default=True) is code


def test_settings_of_a_run_give_the_run_again(whole, tmp_path):
    done = higl(
        "train", "--config", whole / "config.toml", "--out", tmp_path / "again", "--quiet", "--cores", 0, "--trust"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert_same_run(whole, tmp_path / "again")


def test_train_into_a_run_that_exists(whole, capsys, monkeypatch):
    code, _, err = tell(capsys, "train", *tiny.flags(seed=5), "--out", whole)
    assert code == 2
    assert "holds a run with other settings (seed = 0 -> 5)" in err
    code, _, err = tell(capsys, "train", *tiny.flags(steps=100_000), "--out", whole)
    assert code == 2
    assert f"`higl resume {whole} --trust --steps 100000` continues it" in err
    code, _, err = tell(capsys, "train", *tiny.flags(steps=10), "--out", whole)
    assert code == 2
    assert "holds a run with other settings (steps = " in err
    code, out, _ = tell(capsys, "train", *tiny.flags(), "--out", whole)
    assert code == 0
    assert f"which is finished. `higl eval {whole} --trust` evaluates it" in out
    code, out, _ = tell(capsys, "resume", whole)
    assert code == 0
    assert "is finished. `higl resume" in out


def test_a_shorter_run_with_a_derived_schedule(tmp_path, capsys, monkeypatch):
    """The schedule follows from the number of steps, so it is not another run."""
    config = apply(preset(tiny.TASK), {"steps": 2_000})
    config, _ = derive_settings(config, {"steps"}, make_env(tiny.TASK))
    run = RunFolder.create(tmp_path / "run", derive_schedule(config, {"steps"})[0], pytest.fail)
    run.start(1, "cpu (cpu)", 0)
    run.close()
    code, _, err = tell(capsys, "train", tiny.TASK, "--steps", 9_000, "--out", run.path)
    assert code == 2
    assert f"holds this run with 2,000 steps: `higl resume {run.path} --trust --steps 9000`" in err
    code, _, err = tell(capsys, "train", tiny.TASK, "--steps", 9_000, "--landmarks.start", 5, "--out", run.path)
    assert code == 2
    assert "holds a run with other settings (landmarks.start = " in err
    begun = []
    monkeypatch.setattr("higl.commands.train.work_on_run", lambda out, config, *_, new: begun.append(config) or 0)
    assert tell(capsys, "train", tiny.TASK, "--steps", 2_000, "--out", run.path, "--resume")[0] == 0
    assert begun == [run.config]


def test_train_offers_to_resume(tmp_path):
    run = tmp_path / "run"
    process = start("train", *tiny.flags(steps=20_000), "--out", run)
    wait_for(lambda: line_count(run) >= 1, process)
    process.kill()
    process.communicate()
    again = higl("train", *tiny.flags(steps=20_000), "--out", run)
    assert again.returncode == 2
    assert f"already holds this run: `higl resume {run} --trust` continues it" in again.stderr


@pytest.mark.slow
def test_a_run_with_its_own_test_environment_stops_at_its_success(tmp_path, capsys):
    run = tmp_path / "run"
    words = [*tiny.flags(steps=400, evaluation__every=20), "--out", run, "--test-env", tiny.EASY]
    done = higl("train", *words, "--stop-at", 0.95)
    assert done.returncode == 0, done.stderr
    assert f"in {run}, tested in {tiny.EASY}; loading JAX" in done.stdout
    assert "finished: success 95% reached, 100 steps" in done.stdout
    assert tiny.evaluations(run)[-1][2] == "1.0"
    facts = read_facts(run)
    assert (facts["status"], facts["stop_at"], facts["test_env"]) == ("finished", 0.95, tiny.EASY)
    assert "finished" in tell(capsys, "runs", tmp_path)[1]
    assert "is finished" in tell(capsys, "resume", run)[1]
    assert "which is finished" in tell(capsys, "train", *words)[1]
    for command in (["train", *words[:-1], tiny.TASK], ["resume", run, "--test-env", tiny.TASK, "--steps", 140]):
        code, _, error = tell(capsys, *command)
        assert code == 2
        assert f"holds evaluations in {tiny.EASY}: leave out --test-env, or train a new run" in error
    assert f", tested in {tiny.EASY}, its own reward and goals" in tell(capsys, "eval", run, "--episodes", 1)[1]
    assert '"success": 1.0' in tell(capsys, "eval", run, "--episodes", 2, "--json")[1]
    other = tell(capsys, "eval", run, "--episodes", 2, "--json", "--test-env", tiny.TASK)[1]
    assert '"success": 0.0' in other
    assert tell(capsys, "card", run, "-o", tmp_path / "card", "--episodes", 1, "--flat")[0] == 0
    card = (tmp_path / "card" / "README.md").read_text()
    assert "**100.0%**" in card
    assert f"| tested in | `{tiny.EASY}` |" in card
    assert f"HIGL on {tiny.TASK}, tested in {tiny.EASY}\n" in card
    assert f'dataset:\n      name: "{tiny.EASY}"\n' in card

    # The command of the card trains the same run again.
    (repeating,) = re.findall(r"`higl (train --config .*)` trains it again", card)
    assert repeating == f"train --config config.toml --trust --test-env {tiny.EASY} --stop-at 0.95"
    again = higl(*repeating.split(), "--out", tmp_path / "again", cwd=tmp_path / "card")
    assert again.returncode == 0, again.stderr
    assert_same_run(run, tmp_path / "again")
    more = higl("resume", run, "--steps", 140, "--trust")
    assert more.returncode == 0, more.stderr
    assert f"in {run}, tested in {tiny.EASY}; loading JAX" in more.stdout
    assert read_facts(run)["saved_step"] == 140
    assert tiny.evaluations(run)[-1][2] == "1.0"


def test_a_test_environment_needs_the_same_spaces_and_gets_a_folder_of_its_own(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, error = tell(capsys, "train", *tiny.flags(), "--test-env", "point-maze")
    assert code == 2
    assert "steps in runs/support.tiny-tests-Tiny-v0-sparse-tested-in-point-maze-higl-" in out
    assert "this environment has" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("share", ["0", "95", "-1"])
def test_stop_at_is_a_share(share, tmp_path, capsys):
    code, _, error = tell(capsys, "train", "point-maze", "--stop-at", share, "--out", tmp_path / "run")
    assert code == 2
    assert "expected a share" in error


def test_a_run_from_another(whole, tmp_path, capsys, monkeypatch):
    """Its settings are the other's; what cannot change is named, and another origin is another run."""
    monkeypatch.chdir(tmp_path)
    code, out, _ = tell(capsys, "train", tiny.TASK, "--from", whole, "--steps", 40, "--seed", 7)
    assert code == 0
    run = Path("runs") / f"{run_name(apply(read_config(whole), {'seed': 7}))}-from-whole"
    assert f"starting from {whole}, which has learned from 200 steps" in out
    assert read_config(run) == apply(read_config(whole), {"seed": 7, "steps": 40})
    for words, exit_code, told in (
        (["--from", whole, "--high.period", 4], 2, "high.period = 5 -> 4"),
        (["--from", tmp_path / "nowhere"], 1, "nowhere"),
        (["--out", run, "--config", whole / "config.toml", "--steps", 40, "--seed", 7], 2, "begun from"),
    ):
        code, _, err = tell(capsys, "train", tiny.TASK, *words)
        assert (code, err.count("\n")) == (exit_code, 1)
        assert told in err


@pytest.mark.parametrize("words", [("--env", "mine:Env-v0"), ("--env=mine:Env-v0",)])
def test_env_is_the_first_word_and_no_option(words, capsys):
    """`higl eval` and others have the option."""
    code, _, err = tell(capsys, "train", *words)
    assert (code, err) == (2, "higl train: unknown option --env: name the environment first, higl train module:Id\n")
