"""Checkpoints: complete or absent, checked when read, the older one used when the newer is damaged."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import tiny
from support.arrays import differing

from higl.algo.episodes import collect_episode
from higl.algo.learner import Learner
from higl.algo.policy import Spaces
from higl.algo.replay import INSERT_BLOCK
from higl.envs.make import make_env
from higl.errors import CheckpointError, PolicyFileError
from higl.run import checkpoint
from higl.run.checkpoint import Checkpoints, Counters, learner_arrays, restore_learner
from higl.run.policy_file import load_policy, save_policy
from higl.settings.config import Config
from higl.settings.layers import apply


def arrays(step: int) -> dict[str, np.ndarray]:
    return {"weights": np.full((3, 4), step, np.float32), "flags": np.array([True, False]), "codes": np.arange(step)}


def save(store: Checkpoints, *steps: int) -> list[Path]:
    return [store.save(arrays(step), Counters(step, step // 10, 1.5, {"metrics.jsonl": 7})) for step in steps]


@pytest.fixture
def store(tmp_path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints")


def load(store: Checkpoints) -> tuple[int, list[str]]:
    warnings: list[str] = []
    loaded = store.load(warnings.append)
    assert loaded is not None
    found, counters = loaded
    assert not differing(found, arrays(counters.steps))
    assert counters == Counters(counters.steps, counters.steps // 10, 1.5, {"metrics.jsonl": 7})
    return counters.steps, warnings


def test_nothing_saved_yet(store):
    assert store.load(pytest.fail) is None


def test_newest_is_read_and_two_are_kept(store):
    save(store, 10, 20, 30)
    assert load(store) == (30, [])
    assert sorted(place.name for place in store.folder.iterdir()) == ["000000000020", "000000000030"]


def truncate(place: Path) -> None:
    file = place / "state.safetensors"
    file.write_bytes(file.read_bytes()[:-5])


def flip_a_bit(place: Path) -> None:
    file = place / "state.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)


def change_a_counter(place: Path) -> None:
    file = place / "manifest.json"
    file.write_text(file.read_text().replace('"steps": 20', '"steps": 21'))


def damage_the_manifest(place: Path) -> None:
    (place / "manifest.json").write_text("{")


def lose_the_manifest(place: Path) -> None:
    (place / "manifest.json").unlink()


def lose_the_state(place: Path) -> None:
    (place / "state.safetensors").unlink()


def write_as_another_format(place: Path) -> None:
    file = place / "manifest.json"
    manifest = json.loads(file.read_text()) | {"format": 0, "higl": "0.0.1"}
    manifest["sha256"] = checkpoint._digest(manifest)
    file.write_text(json.dumps(manifest))


DAMAGES = {
    truncate: "bytes where",
    flip_a_bit: "state.safetensors is damaged",
    change_a_counter: "manifest.json is damaged",
    damage_the_manifest: "manifest.json is damaged (not JSON)",
    lose_the_manifest: "manifest.json is missing",
    lose_the_state: "state.safetensors cannot be read",
    write_as_another_format: "written by higl 0.0.1 in format 0",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_named_and_the_older_one_used(store, damage):
    _, newest = save(store, 10, 20)
    damage(newest)
    step, (warning,) = load(store)
    assert step == 10
    assert warning.startswith("checkpoint 20 (")
    assert DAMAGES[damage] in warning


def test_all_damaged(store):
    first, second = save(store, 10, 20)
    truncate(first)
    lose_the_manifest(second)
    with pytest.raises(CheckpointError, match=r"no usable checkpoint: checkpoint 20 .*missing; checkpoint 10 .*bytes"):
        store.load(lambda warning: None)


@given(st.data())
def test_any_flipped_bit_is_found(tmp_path_factory, data):
    store = Checkpoints(tmp_path_factory.mktemp("run") / "checkpoints")
    (place,) = save(store, 10)
    file = place / data.draw(st.sampled_from(["state.safetensors", "manifest.json"]))
    content = bytearray(file.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)
    with pytest.raises(CheckpointError):
        store.load(lambda warning: None)


def test_leftovers_are_swept(store):
    save(store, 10)
    for name in (".new-000000000020", ".old-000000000005"):
        shutil.copytree(store.folder / "000000000010", store.folder / name)
    assert load(store) == (10, [])
    save(store, 30)
    assert sorted(place.name for place in store.folder.iterdir()) == ["000000000010", "000000000030"]


def test_a_damaged_one_is_replaced(store):
    _, second = save(store, 10, 20)
    truncate(second)
    save(store, 20)
    assert load(store) == (20, [])


def test_a_damaged_newer_one_does_not_push_out_the_intact_ones(store):
    _, newest = save(store, 10, 50)
    truncate(newest)
    save(store, 20)
    truncate(store.folder / "000000000020")
    assert load(store)[0] == 10


def test_a_damaged_one_that_the_run_has_passed_does_not_push_out_the_intact_ones(store):
    newest = save(store, 10, 20, 30)[-1]
    truncate(newest)
    assert load(store)[0] == 20
    save(store, 25, 35)
    assert sorted(int(place.name) for place in store.folder.iterdir()) == [25, 35]
    truncate(store.folder / "000000000035")
    assert load(store)[0] == 25


def test_full_disk_leaves_the_older_ones(store, monkeypatch):
    save(store, 10, 20)

    def full(path, content):
        Path(path).write_bytes(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_durably", full)
    with pytest.raises(OSError, match="No space left"):
        save(store, 30)
    assert load(store) == (20, [])
    assert sorted(place.name for place in store.folder.iterdir()) == ["000000000010", "000000000020"]


class Crash(BaseException):
    """Stands for a power cut."""


@pytest.mark.parametrize("call", range(1, 25))
def test_crash_at_any_file_operation(store, monkeypatch, call):
    """Whatever the last file operation was, one of the newest two checkpoints is there and intact."""
    save(store, 10, 20)
    count = 0

    def crashing(function):
        def crash_or_call(*args, **kwargs):
            nonlocal count
            count += 1
            if count == call:
                raise Crash
            return function(*args, **kwargs)

        return crash_or_call

    for owner, name in (
        (checkpoint, "write_durably"),
        (checkpoint, "flush_folder"),
        (Path, "mkdir"),
        (Path, "rename"),
        (shutil, "rmtree"),
    ):
        monkeypatch.setattr(owner, name, crashing(getattr(owner, name)))
    try:
        save(store, 30, 40)
    except Crash:
        crashed = True
    else:
        crashed = False
    monkeypatch.undo()
    step, warnings = load(store)
    assert warnings == []
    assert step in ((20, 30, 40) if crashed else (40,))
    assert crashed == (call <= count)
    save(store, 50, 60)
    assert sorted(place.name for place in store.folder.iterdir()) == ["000000000050", "000000000060"]


# --- Learners and policies ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def env():
    return make_env(tiny.TASK)


def trained(env, config: Config, episodes: int) -> Learner:
    learner = Learner(config, Spaces.of(env))
    for number in range(episodes):
        learner.learn(collect_episode(env, learner.policy, number, explore=True))
    return learner


@pytest.fixture(scope="module")
def config() -> Config:
    return apply(Config(), tiny.SETTINGS)


WALKED = {
    "preset": "best",
    "landmarks.graph": "walked",
    "landmarks.coverage": 12,
    "low.normalise": True,
    "goal_unit": (0.4,),
    "high.subgoal_range": (4.0,),
}


# The buffer of 150 rows is not full, and has gone round; with a map, its places are taken and merged.
@pytest.mark.parametrize(("episodes", "changes"), [(3, {}), (12, {}), (5, WALKED)])
def test_learner_is_restored_exactly(env, config, store, episodes, changes):
    config = apply(config, changes)
    learner = trained(env, config, episodes)
    store.save(learner_arrays(learner), Counters(learner.steps, learner.episodes))
    loaded = store.load(pytest.fail)
    assert loaded is not None
    other = Learner(config, Spaces.of(env))
    restore_learner(other, *loaded)
    for first, second in zip(jax.tree.leaves(learner.state), jax.tree.leaves(other.state), strict=True):
        np.testing.assert_array_equal(first, second)
        assert first.dtype == second.dtype
    assert (other.steps, other.episodes) == (learner.steps, learner.episodes)
    episode = collect_episode(env, learner.policy, 99, explore=True)
    assert tiny.without_times(learner.learn(episode)) == tiny.without_times(other.learn(episode))
    assert not differing(learner_arrays(learner), learner_arrays(other))
    assert (len(learner.map.chart().start) > 5) if learner.map is not None else not changes


def test_a_checkpoint_without_its_map_is_rejected(env, config):
    learner = Learner(apply(config, WALKED), Spaces.of(env))
    lacking = {name: array for name, array in learner_arrays(learner).items() if not name.startswith("map.")}
    with pytest.raises(CheckpointError, match=r"another version of the learner \(see map\)"):
        restore_learner(learner, lacking, Counters(0, 0))


def test_only_filled_rows_are_saved(env, config):
    learner = trained(env, config, 3)
    saved = learner_arrays(learner)
    assert saved["low_buffer.rows.achieved"].shape == (3 * tiny.LENGTH, 2)
    assert saved["low.networks.actor.0.weight"].shape == (5, 8)
    assert config.buffer_size < INSERT_BLOCK  # so that the ring buffer is covered by the test above


def test_checkpoint_of_other_settings_is_rejected(env, config):
    learner = trained(env, config, 1)
    counters = Counters(20, 1)
    other = Learner(apply(config, {"hidden": (8, 16)}), Spaces.of(env))
    with pytest.raises(CheckpointError, match="does not fit these settings"):
        restore_learner(other, learner_arrays(learner), counters)
    lacking = {name: array for name, array in learner_arrays(learner).items() if not name.startswith("high.rewards")}
    with pytest.raises(CheckpointError, match=r"another version of the learner \(see high.rewards.high\)"):
        restore_learner(learner, lacking, counters)
    lacking = {name: array for name, array in learner_arrays(learner).items() if not name.startswith("matrix.")}
    with pytest.raises(CheckpointError, match=r"another version of the learner \(see matrix\)"):
        restore_learner(learner, lacking, counters)


def test_policy_file(env, config, tmp_path):
    learner = trained(env, config, 1)
    path = tmp_path / "policy.safetensors"
    save_policy(path, learner.policy, config, learner.spaces)
    policy, its_config = load_policy(path)
    assert its_config == config
    first, second = (collect_episode(env, one, 5, explore=False) for one in (learner.policy, policy))
    np.testing.assert_array_equal(first.action, second.action)
    assert path.stat().st_size < 10_000


def test_damaged_policy_file(env, config, tmp_path):
    learner = Learner(config, Spaces.of(env))
    path = tmp_path / "policy.safetensors"
    with pytest.raises(PolicyFileError, match="missing"):
        load_policy(path)
    save_policy(path, learner.policy, config, learner.spaces)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(PolicyFileError, match="damaged"):
        load_policy(path)
    path.write_bytes(content[:100])
    with pytest.raises(PolicyFileError, match="is damaged: it is not a complete safetensors file"):
        load_policy(path)


def test_policy_file_of_a_walked_map(env, config, tmp_path):
    """Before the map has a landmark, and after; a batch acts as its rows alone."""
    config = apply(config, WALKED)
    learner, path = Learner(config, Spaces.of(env)), tmp_path / "policy.safetensors"
    for number in range(4):
        save_policy(path, learner.tested_policy, config, learner.spaces)
        policy, its_config = load_policy(path)
        assert its_config == config
        for explore in (False, True):
            first, second = (collect_episode(env, one, 5, explore=explore) for one in (learner.tested_policy, policy))
            np.testing.assert_array_equal(first.action, second.action)
        learner.learn(collect_episode(env, learner.policy, number, explore=True))
    assert len(policy.chart.points) > 3
    assert (policy.views.low.factor[2:] != 1.0).all()
    assert path.stat().st_size < 20_000
    observations = [env.reset(seed=seed)[0] for seed in range(3)]
    batch = {part: np.stack([one[part] for one in observations]) for part in observations[0]}
    together, _ = policy.predict(batch)
    alone = [policy.predict(one)[0] for one in observations]
    np.testing.assert_allclose(together, alone, atol=1e-6)
