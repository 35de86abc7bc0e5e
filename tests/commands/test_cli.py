"""The command line as a user meets it: the list of commands, help, and errors of one line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.commands import tell

from higl.cli import COMMANDS


def test_help_lists_every_command(capsys):
    code, out, _ = tell(capsys, "--help")
    assert code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in out
    assert tell(capsys)[0] == 2
    assert tell(capsys, "--version")[1].startswith("higl 0.")


@pytest.mark.parametrize("words", ["train ant-maze-u --help", "--help", "--version", "sweep --help"])
def test_output_that_nobody_reads_is_no_error(words):
    command = [sys.executable, "-m", "higl", *words.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # as `higl train ant-maze-u --help | true`
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_an_interruption_prints_a_line(capsys, monkeypatch):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("higl.commands.tasks.tasks", interrupt)
    assert tell(capsys, "tasks") == (130, "", "higl tasks: interrupted\n")


def test_a_file_that_is_no_policy_is_a_usage_error(capsys, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("learning rate 3\n")
    for words in (["eval", file], ["export", file, "-o", tmp_path / "policy.onnx"]):
        code, _, err = tell(capsys, *words)
        assert code == 2
        assert "is a text file, not a policy" in err


@pytest.mark.parametrize(
    ("calls", "packages"),
    [
        (["--help"], "jax numpy gymnasium rich msgspec argparse"),
        (
            ["runs --help", "train --help", "train x --lo 1", "sweep --help", "sweep list", "plot"],
            "jax numpy gymnasium",
        ),
        (["tasks"], "jax"),
    ],
)
def test_slow_packages_are_imported_only_when_needed(calls, packages):
    program = (
        "import sys; from higl.cli import main\n"
        f"for call in {calls}:\n"
        "    main(call.split())\n"
        f"sys.exit(' '.join(name for name in {packages.split()} if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
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
        ("train ant-maz-u", "unknown task 'ant-maz-u'; did you mean ant-maze-u?"),
        ("train no/Such-v0", "for an environment of your own, name the module that registers it: module:no/Such-v0"),
        ("train CartPole-v1", "task 'CartPole-v1'"),
        ("train ant-maze-u --cores 4096", "--cores: no core 4096"),
        (
            "train ant-maze-u --preset paper --low.hidden_entries 99",
            "low.hidden_entries: the observation of ant-maze-u",
        ),
        ("train ant-maze-u --quiet --low.angles 3 30", "low.angles: the observation of ant-maze-u has 30 entries"),
        ("train ant-maze-u --preset paper --high.subgoal_range 1 2 3", "high.subgoal_range: expected 1 or 2 numbers"),
        ("train --config none.toml", "none.toml: no such file"),
        ("resume", "higl resume: which run?"),
        ("eval x --episodes many", "higl eval: --episodes 'many': expected a whole number"),
        ("eval x --episodes 0", "--episodes must be 1 or more"),
        ("show", "higl show: which task? `higl tasks` lists them"),
        ("show point-maze -o maze.txt", "maze.txt: the name must end in .png or .jpg"),
        ("train -o runs/x point-maze", "unknown option -o; did you mean --out?"),
        ("train point-maze --checkpoint-minutes -1", "--checkpoint-minutes -1: expected a number 0 or more"),
        ("results table --results nowhere", "higl results: there is no folder nowhere"),
        ("show ant-maz-u", "unknown task 'ant-maz-u'; did you mean ant-maze-u"),
        ("tasks all", "unexpected argument 'all'"),
        (
            "train ant-maze-u --low 3",
            "--low is a group of settings: name one of them, such as --low.actor",
        ),
        ("train higl/AntMazeU", "unknown task 'higl/AntMazeU'; did you mean higl/AntMazeU-v0?"),
        ("train higl.envs:higl/AntMazeU-v0", "did you mean higl/AntMazeU-v0?"),
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
    assert code == 2
    assert out.count("\n") <= words.startswith("train "), "what is being done is said before the task is made"
    assert expected in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
