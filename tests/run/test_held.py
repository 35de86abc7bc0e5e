"""The run that a folder holds, compared with the one that is wanted there."""

from dataclasses import replace

import pytest

from higl.run.folder import RunFolder
from higl.run.held import find_held_run
from higl.settings.config import Config

CONFIG = Config(task="point-maze", steps=1000)


def test_a_folder_without_a_run(tmp_path):
    assert find_held_run(tmp_path, CONFIG) is None


@pytest.mark.parametrize(
    ("status", "saved_step", "wanted", "state"),
    [
        ("finished", 1000, 1000, "finished"),
        ("finished", 1000, 2000, "stopped"),
        ("finished", 1000, 500, "finished"),
        ("stopped", 600, 1000, "stopped"),
        ("stopped", 600, 500, "finished"),
        ("running", 1000, 1000, "stopped"),  # killed before it noted its end, which continuing does
        ("failed", 600, 1000, "failed"),
    ],
)
def test_the_state_depends_on_the_steps_that_are_wanted(tmp_path, status, saved_step, wanted, state):
    folder = RunFolder.create(tmp_path, CONFIG, pytest.fail)
    folder.update(status=status, saved_step=saved_step)
    folder.close()
    held = find_held_run(tmp_path, replace(CONFIG, steps=wanted))
    assert held is not None
    assert (held.state, held.config) == (state, CONFIG)


def test_other_settings_are_named(tmp_path):
    folder = RunFolder.create(tmp_path, CONFIG, pytest.fail)
    folder.update(status="stopped", saved_step=None)
    folder.close()
    wanted = replace(CONFIG, seed=3, steps=500)
    held = find_held_run(tmp_path, wanted)
    assert held is not None
    assert held.state == "other settings"
    assert held.reason == f"{tmp_path} holds a run with other settings (seed = 0 -> 3): choose another --out"
    same = find_held_run(tmp_path, wanted, compared=["task"])
    assert same is not None
    assert same.state == "stopped"
