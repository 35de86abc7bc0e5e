"""No file can make higl import a module: every way from a file to an environment, with a module that leaves a trace."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from support import tiny
from support.commands import tell
from support.policies import give_policy

import higl
from higl.algo.policy import Spaces
from higl.envs.source import Source
from higl.envs.trust import check_imported, is_imported, would_import
from higl.errors import TaskError
from higl.run.folder import RunFolder
from higl.run.progress import Silent
from higl.run.reading import read_config
from higl.run.tracker_process import TrackerProcess, make_processes
from higl.run.training import Training, open_training
from higl.settings.layers import apply
from higl.settings.presets import preset
from higl.sweep.catalogue import read_catalogue
from higl.sweep.launch import arguments
from higl.sweep.plan import make_plan
from higl.sweep.runner import Summary

EVIL = """
import pathlib
pathlib.Path(__file__).with_name("trace").write_text("imported")
import gymnasium
from support.tiny import TinyEnv
gymnasium.register("{name}-v0", TinyEnv, disable_env_checker=True)
"""


@dataclass
class Evil:
    """A module in the working folder, and a run whose files name it."""

    folder: Path
    name: str

    @property
    def task(self) -> str:
        return f"{self.name}:{self.name}-v0"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def policy(self) -> Path:
        return self.run / "policy.safetensors"

    @property
    def was_imported(self) -> bool:
        return (self.folder / "trace").exists()


@pytest.fixture
def evil(tmp_path, monkeypatch) -> Evil:
    monkeypatch.chdir(tmp_path)
    # As `python -m higl` has it, so that an import would succeed.
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = Evil(tmp_path, f"evil_{abs(hash(tmp_path))}")
    (tmp_path / f"{found.name}.py").write_text(EVIL.format(name=found.name))
    settings = {name: value for name, value in tiny.SETTINGS.items() if name != "task"}
    run = RunFolder.create(found.run, apply(preset(found.task), settings), pytest.fail)
    run.start(1, "cpu (cpu)", 0)
    row = {"step": 60, "time": 1.0, "episodes": 2, "success": 0.5, "return": -1.0}
    run.evaluation(row | {"steps_to_success": "", "path_length": 1.0})
    run.update(status="stopped", saved_step=0)
    run.close()
    give_policy(found.run, Spaces.of(tiny.TinyEnv()))
    return found


def catalogue(evil: Evil) -> Path:
    path = evil.folder / "catalogue.toml"
    path.write_text(f'[mine]\nsteps = 100\ntasks = ["{evil.task}"]\n[mine.variants]\nplain = {{}}\n')
    return path


REFUSED = {
    "a run to evaluate": ("eval", "run", "--episodes", 1),
    "a policy to evaluate": ("eval", "run/policy.safetensors", "--episodes", 1),
    "a run to film": ("render", "run", "--flat"),
    "a run to continue": ("resume", "run"),
    "a file of settings": ("train", "--config", "run/config.toml", "--out", "new"),
    "a result to test": ("results", "add", "run", "--partial", "--test", 1),
    "a run for a card": ("card", "run", "-o", "new", "--episodes", 1, "--flat"),
    "a catalogue": ("sweep", "run", "mine", "--catalogue", "catalogue.toml"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_module_that_a_file_names_is_not_imported(case, evil, capsys):
    catalogue(evil)
    code, _, err = tell(capsys, *REFUSED[case])
    assert code == 2
    assert err.splitlines()[-1].startswith(f"higl {REFUSED[case][0]}: ")
    assert f"imports the module '{evil.name}' ({evil.folder / evil.name}.py); if you trust it, pass --trust" in err
    assert not evil.was_imported
    assert not (evil.folder / "new").exists()
    assert not (evil.folder / "results").exists()


READING = {
    "runs": ("runs", "."),
    "plot": ("plot", "run"),
    "report": ("report", "run"),
    "landmarks": ("landmarks", "run"),
    "results": ("results", "add", "run", "--partial"),
    "export": ("export", "run", "-o", "policy.onnx"),
    "sweep list": ("sweep", "list", "--catalogue", "catalogue.toml"),
    "sweep show": ("sweep", "show", "mine", "--catalogue", "catalogue.toml"),
    "sweep status": ("sweep", "status", "mine", "--catalogue", "catalogue.toml"),
    "sweep figure": ("sweep", "figure", "mine", "--catalogue", "catalogue.toml"),
    "sweep collect": ("sweep", "collect", "mine", "--catalogue", "catalogue.toml"),
}


@pytest.mark.parametrize("case", READING)
def test_commands_that_make_no_environment_import_nothing(case, evil, capsys):
    catalogue(evil)
    assert "trust" not in tell(capsys, *READING[case])[2]
    assert not evil.was_imported


def name_in_facts(evil: Evil, **facts: object) -> None:
    """Let only `run.json` name the module: the task is a known one."""
    folder = RunFolder.open(evil.run, pytest.fail)
    folder.change_settings(replace(folder.config, task=tiny.TASK))
    folder.update(status="stopped", **facts)
    folder.close()
    give_policy(evil.run, Spaces.of(tiny.TinyEnv()))


@pytest.mark.parametrize("case", ["a run to evaluate", "a run to film", "a run to continue", "a run for a card"])
def test_a_test_environment_that_a_run_names_is_not_imported(case, evil, capsys):
    name_in_facts(evil, test_env=evil.task)
    code, _, err = tell(capsys, *REFUSED[case])
    assert code == 2
    assert f"'{evil.task}' imports the module" in err
    assert "if you trust it, pass --trust" in err
    with pytest.raises(TaskError, match=rf"HIGL\.load\(path, test_env='{evil.task}'\)"):
        higl.HIGL.load(evil.run)
    assert not evil.was_imported


def test_a_tracker_that_a_run_names_is_not_imported(evil, capsys):
    name_in_facts(evil)
    tracker = f"{evil.name}:Tracker"
    record = evil.run / "trackers" / tracker.replace(":", "-")
    record.mkdir(parents=True)
    (record / "record.json").write_text(f'{{"tracker": "{tracker}"}}')
    code, _, err = tell(capsys, "resume", evil.run)
    assert code == 2
    assert f"if you trust it, pass --trust or --tracker {tracker}" in err
    warnings: list[str] = []
    assert make_processes(evil.run, [], warnings.append) == []
    assert f"names the tracker {tracker}, which is not continued" in warnings[0]
    assert not evil.was_imported


@pytest.mark.parametrize("case", ["task", "test_env"])
def test_the_process_of_a_tracker_is_not_trusted_with_what_only_the_run_names(evil, case):
    """The environments were given otherwise, with `--env` for example."""
    if case == "test_env":
        name_in_facts(evil, test_env=evil.task)
    run, envs, progress = evil.run, (tiny.TinyEnv(), tiny.TinyEnv()), Silent()
    with open_training(run, read_config(run), *envs, new=False, progress=progress, trackers=["wandb"]) as training:
        assert [process.command[-2:] for process in processes_of(training)] == [["--tracker", "wandb"]]
        assert training.how_to_continue.endswith("--trust")
    name_in_facts(evil, test_env=None)
    with open_training(run, read_config(run), *envs, new=False, progress=progress, trackers=["wandb"]) as training:
        assert [process.command[-1] for process in processes_of(training)] == ["--trust"]
    assert not evil.was_imported


def processes_of(training: Training) -> list[TrackerProcess]:
    return [each for each in training.observers._observers if isinstance(each, TrackerProcess)]


def test_a_tracker_is_no_maze_of_ogbench(evil):
    record = evil.run / "trackers" / "ogbench-Tracker"
    record.mkdir(parents=True)
    (record / "record.json").write_text('{"tracker": "ogbench:Tracker"}')
    assert make_processes(evil.run, [], pytest.fail) == []


def test_mazes_of_ogbench_are_not_modules():
    assert is_imported("ogbench:antmaze-medium")
    check_imported("ogbench:antmaze-medium")


@pytest.mark.parametrize("words", [("--trust",), ("--env", "TASK")])
def test_eval_imports_what_the_user_names(evil, capsys, words):
    words = [evil.task if word == "TASK" else word for word in words]
    code, out, err = tell(capsys, "eval", evil.policy, "--episodes", 1, *words)
    assert (code, err) == (0, "")
    assert f"{evil.task}, its own reward and goals" in out
    assert evil.was_imported


def test_resume_takes_an_environment(evil, capsys, monkeypatch):
    begun = []
    monkeypatch.setattr("higl.commands.resume.work_on_run", lambda *_, new, env: begun.append(env) or 0)
    assert tell(capsys, "resume", evil.run, "--env", evil.task)[0] == 0
    assert begun == [evil.task]
    assert evil.was_imported


def test_another_environment_must_fit_the_policy(evil, capsys):
    code, _, err = tell(capsys, "eval", evil.policy, "--episodes", 1, "--env", "point-maze")
    assert code == 2
    assert "the agent expects observations of 3 numbers" in err
    assert not evil.was_imported


@pytest.mark.parametrize("answer", ["", "n", "y"])
def test_a_terminal_is_asked_and_told_which_file_would_run(evil, capsys, monkeypatch, answer):
    questions = []
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: questions.append(question) or answer)
    code, _, _ = tell(capsys, "eval", evil.policy, "--episodes", 1)
    assert len(questions) == 1
    assert f"the module '{evil.name}' ({evil.folder / evil.name}.py). Its code will run" in questions[0]
    assert questions[0].endswith("[y/N] ")
    assert evil.was_imported is (answer == "y")
    assert code == (0 if answer == "y" else 2)


@pytest.mark.parametrize("name", ["run", "run/policy.safetensors"])
def test_load_in_python(evil, name):
    with pytest.raises(TaskError, match=rf"the module '{evil.name}'.*HIGL\.load\(path, env='{evil.task}'\)"):
        higl.HIGL.load(name)
    assert not evil.was_imported
    agent = higl.HIGL.load(evil.policy, env=evil.task)
    assert evil.was_imported
    assert higl.evaluate(agent, episodes=1).episodes == 1
    assert higl.HIGL.load(evil.policy).spaces == agent.spaces, "it is imported now, so nothing more would run"


def test_a_policy_that_only_acts_needs_no_module(evil):
    assert higl.load_policy(evil.run).config.task == evil.task
    assert not evil.was_imported


def test_the_full_state_of_an_agent(evil):
    higl.HIGL(tiny.TinyEnv(), verbose=False, hidden=(8,)).save("full", full=True)
    from higl.run.policy_file import read_arrays, write_arrays

    metadata, arrays = read_arrays(Path("full"))
    write_arrays(Path("full"), metadata | {"config": metadata["config"].replace("TinyEnv", evil.task)}, arrays)
    with pytest.raises(TaskError, match="if you trust it"):
        higl.HIGL.load("full")
    assert not evil.was_imported


@pytest.mark.parametrize("processes", [False, True])
def test_several_environments(evil, processes):
    with pytest.raises(TaskError, match="nobody has named it"):
        Source(evil.task).training_env(num_envs=2, observe_achieved=False, processes=processes)
    assert not evil.was_imported


def test_a_name_that_the_user_gives_in_python_is_imported(evil):
    agent = higl.HIGL(evil.task, verbose=False)
    assert evil.was_imported
    assert agent.config.task == evil.task


def test_a_trusted_sweep_passes_its_trust_to_its_runs(evil):
    run = make_plan(read_catalogue(catalogue(evil))["mine"], evil.folder)[0]
    assert "--trust" not in arguments(run, 5.0)
    assert "--trust" in arguments(replace(run, trusted=True), 5.0)


@pytest.mark.parametrize("task", ["evil", "point-maze"])
def test_sweep_run_trusts_only_what_the_user_allows(evil, capsys, monkeypatch, task):
    path = catalogue(evil)
    path.write_text(path.read_text().replace(evil.task, evil.task if task == "evil" else task))
    begun = []
    monkeypatch.setattr("higl.commands.sweep.run_sweep", lambda plan, *_: begun.extend(plan) or Summary())
    assert tell(capsys, "sweep", "run", "mine", "--catalogue", path, "--trust")[0] == 0
    assert [run.trusted for run in begun] == [task == "evil"]
    assert not evil.was_imported, "its runs import it"


def test_the_parent_of_a_module_is_not_imported_to_find_it(evil):
    assert not is_imported(f"{evil.name}.part:Id-v0")
    assert f"{evil.name}.py" in would_import(f"{evil.name}.part:Id-v0")
    assert not evil.was_imported


@pytest.mark.parametrize("task", [":Id-v0", "no_such_module:Id-v0", "..:Id-v0"])
def test_names_of_modules_that_do_not_exist(task):
    with pytest.raises(TaskError, match="there is no module"):
        check_imported(task)


def test_tasks_without_a_module_need_no_trust():
    for task in ("point-maze", "higl/PointMaze-v0", "FetchReach-v4", "support.tiny:tests/Tiny-v0", "numpy:Id-v0"):
        check_imported(task)
    assert np.__name__ in sys.modules
