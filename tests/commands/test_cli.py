"""The command line as a user meets it: help, errors of one line, signals, locks, kill -9, full disks."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import tiny
from support.tiny import higl, start

from higl.cli import COMMANDS, main
from higl.commands.evaluate import text
from higl.commands.train import _agrees, _open_folder, default_folder
from higl.run.checkpoint import Checkpoints, differing
from higl.run.folder import RunFolder
from higl.run.measure import Evaluation, Outcome
from higl.run.progress import Silent
from higl.run.reading import read_config, read_facts
from higl.settings.config import Config
from higl.settings.layers import apply, setting_types, to_toml
from higl.settings.presets import preset


def tell(capsys, *words: object) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code and what it wrote."""
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def wait_for(condition, process: subprocess.Popen, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def line_count(run: Path) -> int:
    metrics = run / "metrics.jsonl"
    return metrics.read_bytes().count(b"\n") if metrics.exists() else 0


# --- Help and errors ------------------------------------------------------------------------------------------------


def test_help_lists_every_command(capsys):
    code, out, _ = tell(capsys, "--help")
    assert code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in out
    assert tell(capsys)[0] == 2
    assert tell(capsys, "--version")[1].startswith("higl 0.")


def test_output_that_nobody_reads_is_no_error():
    command = [sys.executable, "-m", "higl", "train", "ant-maze-u", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # as `higl train ant-maze-u --help | true`
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_help_and_lists_do_not_import_jax():
    program = (
        "import sys; from higl.cli import main\n"
        "for words in (['--help'], ['runs', '--help'], ['tasks'], ['train', '--help'], ['train', 'x', '--lo', '1']):\n"
        "    main(words)\n"
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("task", "algo", "family"), [("point-maze", "hrac", "best"), ("pusher", "higl", "paper")])
def test_help_of_train_shows_the_presets_values(capsys, task, algo, family):
    code, out, _ = tell(capsys, "train", task, "--algo", algo, "--help", "--preset", family)
    flat = " ".join(out.split())
    assert code == 0
    assert "usage: higl train TASK [OPTION ...]" in flat
    shown = dict(re.findall(r"(--[a-z.-]+) \S+ [A-Z][^()]*(?:\([^()]*\)[^()]*)*?\(default: ([^()]*)\)", flat))
    config = preset(task, algo, family)
    assert shown["--algo"] == algo
    assert shown["--preset"] == family
    assert shown["--landmarks.coverage"] == str(config.landmarks.coverage)
    assert shown["--adjacency.degree"] == str(config.adjacency.degree)
    assert float(shown["--landmarks.cutoff"]) == config.landmarks.cutoff
    assert set(setting_types(Config)) <= {"task"} | {
        name[2:].replace("-", "_") for name in re.findall(r"--[a-z.-]+", flat)
    }


@pytest.mark.parametrize("command", ["resume", "eval", "runs", "tasks", "show"])
def test_help_of_commands(capsys, command):
    code, out, _ = tell(capsys, command, "--help")
    assert code == 0
    assert f"usage: higl {command}" in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("trian", "higl: unknown command 'trian'; did you mean train?"),
        ("train", "higl train: no task"),
        ("train ant-maze-u --landmarks.coverag 4", "did you mean --landmarks.coverage?"),
        ("train ant-maze-u --landmarks.coverage x", "--landmarks.coverage 'x': expected a whole number"),
        ("train ant-maze-u reacher", "unexpected argument 'reacher'"),
        ("train ant-maze-u --checkpoint-minutes soon", "--checkpoint-minutes 'soon': expected a number"),
        ("train ant-maz-u", "unknown task 'ant-maz-u'; did you mean 'ant-maze-u'?"),
        ("train no/Such-v0", "unknown task 'no/Such-v0'"),
        ("train CartPole-v1", "task 'CartPole-v1'"),
        ("train ant-maze-u --cores 4096", "--cores: no core 4096"),
        ("train ant-maze-u --low.hidden_entries 99", "low.hidden_entries: the observation of ant-maze-u has 30"),
        ("train ant-maze-u --high.subgoal_range 1 2 3", "high.subgoal_range: expected 1 or 2 numbers"),
        ("train --config none.toml", "none.toml: no such file"),
        ("resume", "higl resume: which run?"),
        ("eval x --episodes many", "higl eval: --episodes 'many': expected a whole number"),
        ("eval x --episodes 0", "--episodes must be 1 or more"),
        ("show", "higl show: which task? `higl tasks` lists them"),
        ("show point-maze -o maze.txt", "maze.txt: the name must end in .png or .jpg"),
        ("train -o runs/x point-maze", "unknown option -o; did you mean --out?"),
        ("train point-maze --checkpoint-minutes -1", "--checkpoint-minutes -1: expected a number 0 or more"),
        ("results table --results nowhere", "higl results: there is no folder nowhere"),
        ("show ant-maz-u", "unknown task 'ant-maz-u'; did you mean 'ant-maze-u'"),
        ("tasks all", "unexpected argument 'all'"),
        ("train ant-maze-u --low 3", "--low is a group of settings: name one of them, such as --low.hidden"),
        ("train higl/AntMazeU", "unknown task 'higl/AntMazeU'; did you mean 'higl/AntMazeU-v0'?"),
        ("train higl.envs:higl/AntMazeU-v0", "did you mean 'higl/AntMazeU-v0'?"),
        ("train Pendulum-v1", "env = higl.wrap_goal(env, goal_fn="),
        ("train no_such_module:Id-v0", "there is no module 'no_such_module', neither installed nor in"),
        ("resume nothing", "nothing is not a run folder"),
        ("eval nothing", "nothing is neither a run folder nor a policy file"),
        ("eval no-such-task --pretrained", "no trained policy for 'no-such-task' comes with higl"),
        ("render no-such-task --pretrained", "no trained policy for 'no-such-task' comes with higl"),
        ("runs nothing", "there is no folder nothing"),
        ("plot nothing", "nothing does not exist"),
    ],
)
def test_asked_wrongly(capsys, tmp_path, monkeypatch, words, expected):
    monkeypatch.chdir(tmp_path)
    code, out, err = tell(capsys, *words.split())
    assert (code, out) == (2, "")
    assert expected in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


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
    assert (result.returncode, result.stdout) == (2, "")
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1
    assert {place.name for place in tmp_path.iterdir()} <= {"mine.py", "__pycache__"}


def test_a_file_where_a_run_should_go(capsys, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    code, _, err = tell(capsys, "train", "point-maze", "--out", str(file))
    assert code == 2
    assert "is a file, and a run needs a folder" in err
    assert file.read_text() == "mine"


def test_a_module_in_the_working_folder_is_found(tmp_path):
    shutil.copy(tiny.__file__, tmp_path / "own_module.py")
    script = (
        "import sys; from higl.envs.make import make_env; "
        "assert '' not in sys.path; print(make_env('own_module:tests/Tiny-v0').observation_space['observation'].shape)"
    )
    # -P, as the installed command: the folder it is called in is not searched.
    command = [sys.executable, "-P", "-c", script]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout == "(3,)\n"


def test_default_folder():
    assert default_folder(preset("ant-maze-u", "hrac")) == Path("runs/ant-maze-u-sparse-hrac-0")
    assert default_folder(preset("some/Id-v0")) == Path("runs/some-Id-v0-sparse-higl-0")
    changed = apply(preset("ant-maze-u"), {"landmarks.coverage": 10, "steps": 500})
    assert default_folder(changed) == Path("runs/ant-maze-u-sparse-higl-coverage10-0")  # else it would take fig3's
    assert default_folder(preset("module:some/Id-v0")) == Path("runs/module-some-Id-v0-sparse-higl-0")


def test_summary_of_an_evaluation():
    hit, miss = Outcome(True, -10.0, 100, 40, 12.0), Outcome(False, -100.0, 100, None, 30.0)
    summary = Evaluation((hit,) * 8 + (miss,) * 2).summary()
    assert summary["success"] == 0.8
    low, high = summary["success_interval"]
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)  # Wilson (1927), by hand
    assert (summary["steps_to_success"], summary["path_length"], summary["return"]) == (40, 15.6, -28.0)
    assert Evaluation((miss,)).summary()["steps_to_success"] is None


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
    assert _agrees("Continue it?") is code


def finished_run(path: Path) -> Path:
    folder = RunFolder.create(path, apply(preset("point-maze"), {"steps": 500}), pytest.fail)
    folder.update(status="finished", saved_step=500)
    folder.close()
    return path


def test_a_run_that_was_asked_for_more_is_continued(monkeypatch, tmp_path, capsys):
    """Killed after its settings said so and before it went on, it is not finished at 500 of 1,000 steps for good."""
    begun = []
    monkeypatch.setattr("higl.commands.train._work", lambda out, *_, new: begun.append((out, new)) or 0)
    run, words = finished_run(tmp_path / "run"), ["train", "point-maze", "--resume", "--out", tmp_path / "run"]
    assert "is finished" in tell(capsys, "resume", run)[1]
    assert "is finished" in tell(capsys, *words, "--steps", 500)[1]
    longer = apply(read_config(run), {"steps": 1000})
    (run / "config.toml").write_text(to_toml(longer))
    assert tell(capsys, "resume", run) == (0, "", "")
    assert tell(capsys, *words, "--steps", 1000) == (0, "", "")
    assert begun == [(run, False)] * 2


def test_a_kill_before_a_longer_run_goes_on(monkeypatch, tmp_path):
    def killed(*_) -> None:
        raise KeyboardInterrupt

    run = finished_run(tmp_path / "run")
    monkeypatch.setattr("higl.commands.train.replace_file", killed)
    with pytest.raises(KeyboardInterrupt):
        _open_folder(run, apply(read_config(run), {"steps": 1000}), Silent(), new=False)
    assert read_facts(run)["status"] != "finished"


# --- A run from its start to its measurement ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Return a run that was never interrupted."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    done = higl("train", *tiny.flags(), "--out", run)
    assert done.returncode == 0, done.stderr
    assert "evaluation at step 60: success" in done.stdout
    assert "finished: 200 steps in" in done.stdout
    return run


def assert_same_run(first: Path, second: Path) -> None:
    assert tiny.lines(first) == tiny.lines(second)
    assert tiny.evaluations(first) == tiny.evaluations(second)
    states = [Checkpoints(run / "checkpoints").load(pytest.fail) for run in (first, second)]
    assert states[0] is not None
    assert states[1] is not None
    assert differing(states[0][0], states[1][0]) == []


def test_settings_of_a_run_give_the_run_again(whole, tmp_path):
    done = higl("train", "--config", whole / "config.toml", "--out", tmp_path / "again", "--quiet", "--cores", 0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert_same_run(whole, tmp_path / "again")


def test_train_into_a_run_that_exists(whole, capsys, monkeypatch):
    code, _, err = tell(capsys, "train", *tiny.flags(seed=5), "--out", whole)
    assert code == 2
    assert "holds a run with other settings (seed = 0 -> 5)" in err
    code, out, _ = tell(capsys, "train", *tiny.flags(), "--out", whole)
    assert code == 0
    assert "it is finished" in out
    code, out, _ = tell(capsys, "resume", whole)
    assert code == 0
    assert "is finished. `higl resume" in out


def test_eval_is_the_same_on_any_number_of_cores(whole):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core")
    first = higl("eval", whole, "--episodes", 5, "--seed", 1, "--json")
    second = higl("eval", whole, "--episodes", 5, "--seed", 1, "--json", "--cores", 0)
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout) == json.loads(second.stdout)
    assert len(json.loads(first.stdout)["outcomes"]) == 5


def test_results_keep_what_eval_says(whole, tmp_path):
    told = json.loads(higl("eval", whole, "--episodes", 4, "--json").stdout)
    done = higl("results", "add", whole, "--results", tmp_path, "--test", 4)
    assert done.returncode == 0, done.stderr
    kept = json.loads((Path(done.stdout.strip()) / "test.json").read_text())
    assert kept["episodes"] == 4
    assert kept == {name: told[name] for name in kept}


def test_eval_names_the_reward_of_our_tasks_only():
    summary = Evaluation((Outcome(False, -100.0, 100, None, 30.0),)).summary() | {
        "policy": "p",
        "reward": "sparse",
        "seed": 0,
    }
    assert "point-maze, sparse reward, test goals, seed 0" in text(summary | {"task": "point-maze"})
    assert "Mine-v0, its own reward and goals, seed 0" in text(summary | {"task": "Mine-v0"})


def test_eval_as_text(whole):
    done = higl("eval", whole / "policy.safetensors", "--episodes", 3, "--cores", 0)
    assert done.returncode == 0, done.stderr
    for word in ("success", "95% interval", "steps to success", "path length", "return"):
        assert word in done.stdout


def test_runs(whole, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    code, out, _ = tell(capsys, "runs", whole.parent)
    assert code == 0
    assert out.splitlines()[2].split()[:7] == ["whole", "finished", tiny.TASK, "higl", "sparse", "0", "200"]
    code, out, _ = tell(capsys, "runs", whole, "--json")
    state = json.loads(out)
    assert (state["state"], state["step"], state["steps"]) == ("finished", 200, 200)


def test_resume_trains_on(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    done = higl("resume", tmp_path / "run", "--steps", 240)
    assert done.returncode == 0, done.stderr
    assert [line["step"] for line in tiny.lines(tmp_path / "run")] == list(range(20, 241, 20))


def test_resume_does_not_go_back(whole, tmp_path, capsys):
    shutil.copytree(whole, tmp_path / "run")
    before = (tmp_path / "run" / "config.toml").read_bytes()
    code, _, error = tell(capsys, "resume", tmp_path / "run", "--steps", 100)
    assert code == 2
    assert "--steps 100" in error
    assert "has reached 200 steps already" in error
    assert (tmp_path / "run" / "config.toml").read_bytes() == before


# --- Interruptions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(whole, tmp_path, number, code):
    run = tmp_path / "run"
    process = start("train", *tiny.flags(steps=20_000), "--out", run)
    wait_for(lambda: line_count(run) >= 3, process)

    # A second process is refused as long as this one runs.
    other = higl("resume", run)
    assert other.returncode == 1
    assert f"is in use by process {process.pid} on" in other.stderr
    assert main(["runs", str(run)]) == 0

    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert "stopping after this stage" in err
    assert f"To continue: higl resume {run}" in err
    facts = read_facts(run)
    assert facts["status"] == "stopped"
    assert facts["saved_step"] == 20 * line_count(run)

    # The metrics so far are those of the run that was not interrupted.
    assert tiny.lines(run)[: len(tiny.lines(whole))] == tiny.lines(whole)[: line_count(run)]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_all_processes_of_a_run(tmp_path, number, code):
    """As a terminal sends Ctrl-C, and a cluster its SIGTERM: the environments' processes get it, too."""
    run = tmp_path / "run"
    settings = tiny.flags(task=tiny.SLOW, steps=20_000, num_envs=2, evaluation__every=10_000)
    process = start("train", *settings, "--processes", "--out", run, start_new_session=True)
    wait_for(lambda: line_count(run) >= 4, process)
    time.sleep(0.5)  # while they are stepped: an episode takes two seconds
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=240)
    assert process.returncode == code, err
    facts = read_facts(run)
    assert facts["status"] == "stopped"
    assert facts["saved_step"] == 20 * line_count(run)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(3))
def test_kill_9_at_random_moments(whole, tmp_path, attempt):
    """Saves after every episode, so that many kills fall into a save. More: benchmarks/kill_resume.py."""
    run, rng = tmp_path / "run", random.Random(attempt)
    process = start("train", *tiny.flags(), "--out", run, "--checkpoint-minutes", 0)
    episode = rng.randrange(1, 9)
    wait_for(lambda: line_count(run) >= episode, process)
    time.sleep(rng.uniform(0, 0.15))
    process.kill()
    process.communicate()
    done = higl("train", *tiny.flags(), "--out", run, "--resume", "--checkpoint-minutes", 0)
    assert done.returncode == 0, done.stderr
    assert_same_run(whole, run)


def test_train_offers_to_resume(tmp_path):
    run = tmp_path / "run"
    process = start("train", *tiny.flags(steps=20_000), "--out", run)
    wait_for(lambda: line_count(run) >= 1, process)
    process.kill()
    process.communicate()
    again = higl("train", *tiny.flags(steps=20_000), "--out", run)
    assert again.returncode == 2
    assert f"already holds this run: `higl resume {run}` continues it" in again.stderr


def limit_file_size() -> None:
    """Let no file of this process grow over 40 kB: a state of the tiny run has more, its logs have less."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_checkpoints_that_cannot_be_written(whole, tmp_path):
    run = tmp_path / "run"
    state = max((whole / "checkpoints").iterdir()) / "state.safetensors"
    assert state.stat().st_size > 40_000
    process = start("train", *tiny.flags(), "--out", run, "--checkpoint-minutes", 0, preexec_fn=limit_file_size)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 1
    assert re.search(r"no checkpoint at step \d+: File too large; .*, and the run goes on", err)
    assert "free some space, then: higl resume" in err
    assert tiny.lines(run) == tiny.lines(whole)
    done = higl("resume", run)
    assert done.returncode == 0, done.stderr
    assert_same_run(whole, run)


# In a mount namespace of its own, so that the small disk is gone with the script, however that ends.
SMALL_DISK_SCRIPT = """
set -e
mount -t tmpfs -o size=512k tmpfs "$DISK"
"$PYTHON" -m higl.cli train "$@" --out "$DISK/run" --checkpoint-minutes 0 2> "$RESULT/stderr" > /dev/null & run=$!
until [ "$(cat "$DISK/run/metrics.jsonl" 2> /dev/null | wc -l)" -ge 3 ]; do kill -0 $run; sleep 0.05; done
dd if=/dev/zero of="$DISK/filler" bs=1k 2> /dev/null || true
code=0; wait $run || code=$?
echo $code > "$RESULT/code"
rm "$DISK/filler"
"$PYTHON" -m higl.cli resume "$DISK/run" --quiet
cp -r "$DISK/run" "$RESULT/run"
"""


def test_full_disk(whole, tmp_path):
    unshare = ["unshare", "--map-root-user", "--mount"]
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run([*unshare, *mount], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small disk")
    (tmp_path / "disk").mkdir()
    places = {"DISK": str(tmp_path / "disk"), "RESULT": str(tmp_path), "PYTHON": sys.executable}
    command = [*unshare, "sh", "-c", SMALL_DISK_SCRIPT, "sh", *tiny.flags()]
    done = subprocess.run(command, env=tiny.environment() | places, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "code").read_text() == "1\n"
    told = (tmp_path / "stderr").read_text()
    assert "No space left on device" in told
    assert "is intact, and the run goes on" in told
    assert_same_run(whole, tmp_path / "run")
