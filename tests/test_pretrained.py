"""Policies that ship with the package: found by task, published from a run, without facts about the machine."""

import json

import pytest
from support.tiny import SETTINGS, TASK

from higl import pretrained
from higl.algo.learner import Learner
from higl.algo.policy import Spaces
from higl.errors import RunFolderError
from higl.run.files import POLICY
from higl.run.folder import RunFolder
from higl.run.policy_file import load_policy, save_policy
from higl.settings.config import Config
from higl.settings.layers import apply


@pytest.fixture
def run(tmp_path):
    config = apply(Config(), SETTINGS | {"task": "point-maze"})
    folder = RunFolder.create(tmp_path / "run", config, print)
    folder.start(1, "cpu", 0)
    spaces = Spaces(7, 2, (-1.0, -1.0), (1.0, 1.0))
    save_policy(folder.path / POLICY, Learner(config, spaces).policy, config, spaces)
    folder.close()
    return folder.path


def test_a_published_run_is_found_by_its_task(run, tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path / "shipped")
    (tmp_path / "shipped").mkdir()
    with pytest.raises(RunFolderError, match="none yet"):
        pretrained.pretrained_run("point-maze")
    place = pretrained.publish(run, pretrained.FOLDER)
    assert pretrained.available() == ["point-maze-sparse-higl"]
    for name in ("point-maze", "higl/PointMaze-v0"):
        assert pretrained.pretrained_run(name) == place
    assert load_policy(place / POLICY)[1].task == "point-maze"
    with pytest.raises(RunFolderError, match="point-maze-sparse-higl"):
        pretrained.pretrained_run("point-maze", algo="hrac")


def test_a_published_run_names_versions_but_not_the_machine(run, tmp_path):
    facts = json.loads((pretrained.publish(run, tmp_path / "shipped") / "run.json").read_text())
    (start,) = facts["starts"]
    assert start["packages"]["jax"]
    assert "commit" in start
    assert not {"host", "command", "process", "system"} & start.keys()


def test_shipped_policies_load():
    names = pretrained.available()
    assert names
    for name in names:
        _, config = load_policy(pretrained.FOLDER / name / POLICY)
        assert name == f"{config.task}-{config.reward}-{config.algo}"
        assert config.task != TASK
