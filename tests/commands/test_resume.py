"""`higl resume`: train on, and never go back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import tiny
from support.commands import finished_run, tell
from support.reach import SMALL
from support.tiny import higl

import higl as library
from higl.run.files import replace_file
from higl.run.folder import RunFolder
from higl.run.reading import read_config, read_facts, read_run
from higl.settings.layers import apply, to_toml


def test_a_run_that_was_asked_for_more_is_continued(monkeypatch, tmp_path, capsys):
    """Killed after its settings were changed and before it went on, it does not count as finished at 500 steps."""
    begun = []
    for name in ("train", "resume"):
        monkeypatch.setattr(
            f"higl.commands.{name}.work_on_run", lambda out, *_, new, env=None: begun.append((out, new)) or 0
        )
    run, words = finished_run(tmp_path / "run"), ["train", "point-maze", "--resume", "--out", tmp_path / "run"]
    assert "is finished" in tell(capsys, "resume", run)[1]
    assert "is finished" in tell(capsys, *words, "--steps", 500)[1]
    longer = apply(read_config(run), {"steps": 1000})
    (run / "config.toml").write_text(to_toml(longer))
    assert tell(capsys, "resume", run)[::2] == (0, "")
    assert tell(capsys, *words, "--steps", 1000)[::2] == (0, "")
    assert begun == [(run, False)] * 2


def test_a_kill_before_a_longer_run_goes_on(monkeypatch, tmp_path):
    def killed_before_the_settings(path: Path, content: bytes) -> None:
        if path.name == "config.toml":
            raise KeyboardInterrupt
        replace_file(path, content)

    run = finished_run(tmp_path / "run")
    monkeypatch.setattr("higl.run.folder.replace_file", killed_before_the_settings)
    with pytest.raises(KeyboardInterrupt):
        RunFolder.open(run, pytest.fail).change_settings(apply(read_config(run), {"steps": 1000}))
    assert read_facts(run)["status"] != "finished"


def test_resume_trains_on(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    done = higl("resume", tmp_path / "run", "--steps", 240, "--trust")
    assert done.returncode == 0, done.stderr
    assert [line["step"] for line in tiny.lines(tmp_path / "run")] == list(range(20, 241, 20))


def test_resume_does_not_go_back(whole, tmp_path, capsys):
    shutil.copytree(whole, tmp_path / "run")
    before = (tmp_path / "run" / "config.toml").read_bytes()
    code, _, error = tell(capsys, "resume", tmp_path / "run", "--steps", 100)
    assert code == 2
    assert "--steps 100" in error
    assert "has already reached 200 steps" in error
    assert (tmp_path / "run" / "config.toml").read_bytes() == before


def test_a_resume_that_fails_leaves_the_settings(whole, tmp_path, capsys):
    run = shutil.copytree(whole, tmp_path / "run")
    for state in (run / "checkpoints").glob("*/state.safetensors"):
        state.write_bytes(b"damaged")
    before = (run / "config.toml").read_bytes()
    code, _, err = tell(capsys, "resume", run, "--steps", 240)
    assert code == 1
    assert "no usable checkpoint" in err
    assert (run / "config.toml").read_bytes() == before
    assert read_facts(run)["status"] == "finished"


def test_a_run_on_an_object_is_continued_in_python(tmp_path, capsys):
    run = finished_run(tmp_path / "run")
    folder = RunFolder.open(run, pytest.fail)
    folder.update(has_id=False)
    folder.close()
    loading = f"higl.HIGL.load('{run}', env).learn(...)"
    assert f"`{loading}` extends it." in tell(capsys, "resume", run)[1]
    code, _, err = tell(capsys, "resume", run, "--steps", 1000)
    assert code == 2
    assert f"was trained in Python on an environment object: `{loading}` continues it" in err
    folder = RunFolder.open(run, pytest.fail)
    folder.update(status="stopped")
    folder.close()
    assert "`higl.HIGL.load(folder, env).learn(...)` continues it." in read_run(run).notices[-1]


def test_a_run_on_an_object_that_the_command_line_continued_still_has_no_id(tmp_path, capsys):
    run = tmp_path / "run"
    library.HIGL(lambda: tiny.TinyEnv(), verbose=0, **SMALL).learn(40, log_dir=run)
    assert tell(capsys, "resume", run, "--env", tiny.TASK, "--steps", 60)[0] == 0
    assert read_facts(run)["saved_step"] == 60
    assert read_facts(run)["has_id"] is False
    code, _, err = tell(capsys, "resume", run, "--steps", 80)
    assert code == 2
    assert f"{run} was trained in Python on an environment object" in err
