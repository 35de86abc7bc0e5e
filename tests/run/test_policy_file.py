"""The settings stored in a policy file."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
import safetensors.numpy
from support.policies import give_policy
from support.synthetic import synthetic_run
from support.toy import SPACES, random_policy, tiny_config

from higl.algo.policy import Policy
from higl.algo.subgoals import Statistics, views_of
from higl.errors import PolicyFileError
from higl.run.policy_file import FORMAT, load_policy, read_arrays, save_policy, write_arrays
from higl.run.reading import read_config


@pytest.fixture
def file(tmp_path):
    folder = synthetic_run(tmp_path / "run", seed=0, snapshots=1)
    give_policy(folder)
    return folder / "policy.safetensors"


def test_a_policy_file_holds_the_settings_of_its_run(file):
    assert load_policy(file)[1] == read_config(file.parent)


@pytest.mark.parametrize("normalise", [False, True])
def test_a_policy_that_sees_angles_acts_the_same_when_loaded(tmp_path, normalise):
    config = tiny_config(low={"angles": (0, 2), "hidden_entries": (1,), "normalise": normalise})
    plain = random_policy(config)
    seen = Statistics(np.float32(9), np.float32([0.5, -1.0, 0.1]), np.float32([0.1, 2.0, 0.0]))
    policy = Policy(config, SPACES, plain.low_actor, plain.high_actor, views_of(config, seen))
    save_policy(tmp_path / "policy.safetensors", policy, config, SPACES)
    loaded, settings = load_policy(tmp_path / "policy.safetensors")
    assert settings.low.angles == (0, 2)
    rng = np.random.default_rng(0)
    observation, subgoal = (rng.normal(0, 3, (20, size)).astype(np.float32) for size in (3, 2))
    np.testing.assert_array_equal(loaded.act(observation, subgoal, None), policy.act(observation, subgoal, None))
    goals = rng.normal(0, 3, (2, 20, 2)).astype(np.float32)
    np.testing.assert_array_equal(loaded.propose(observation, *goals, None), policy.propose(observation, *goals, None))
    turned = observation + np.float32([2 * np.pi, 5.0, -2 * np.pi])
    np.testing.assert_allclose(loaded.act(turned, subgoal, None), policy.act(observation, subgoal, None), atol=1e-5)


def test_a_high_level_that_saw_raw_observations_is_rejected(tmp_path):
    """Its networks may have the same sizes as today's, and would act on other inputs."""
    config, path = tiny_config(algo="hrac", low={"normalise": True}), tmp_path / "policy.safetensors"
    save_policy(path, random_policy(config), config, SPACES)
    metadata, arrays = read_arrays(path)
    write_arrays(path, metadata, {name: array for name, array in arrays.items() if not name.startswith("high_view")})
    with pytest.raises(PolicyFileError, match=r"policy\.safetensors was written by another version: its high level"):
        load_policy(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda settings: settings["low"].pop("discount"), r"policy\.safetensors: missing setting low\.discount$"),
        (lambda settings: settings["low"].update(noise=1), r"policy\.safetensors: unknown setting low\.noise"),
    ],
)
def test_missing_and_unknown_settings_are_rejected(file, change, message):
    metadata, arrays = read_arrays(file)
    settings = json.loads(metadata["config"])
    change(settings)
    write_arrays(file, metadata | {"config": json.dumps(settings)}, arrays)
    with pytest.raises(PolicyFileError, match=message):
        load_policy(file)


@pytest.mark.parametrize("kind", [None, "agent"])
def test_a_file_of_another_kind_is_rejected(file, kind):
    metadata, arrays = read_arrays(file)
    del metadata["kind"]
    write_arrays(file, metadata | ({"kind": kind} if kind else {}), arrays)
    with pytest.raises(PolicyFileError, match=rf"does not hold a policy \(its kind is {kind}\)"):
        load_policy(file)


def test_another_format_is_rejected(file):
    metadata, arrays = read_arrays(file)
    write_arrays(file, metadata | {"format": "1"}, arrays)
    with pytest.raises(PolicyFileError, match=f"has format 1; this version of higl reads format {FORMAT}"):
        load_policy(file)


def torch_archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"weight": 1}))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"# my notes\nlearning rate 3\n", "is a text file, not a policy"),
        (b"[low]\nhidden = [1]\n", "is a text file"),
        (pickle.dumps({"weight": 1}), "is a pickle.*can run code"),
        (torch_archive(), "is a pickle or an archive"),
        (b"", "is empty"),
        (bytes(range(256)), "is not a safetensors file"),
        (safetensors.numpy.save({"weight": np.zeros(3)}), "is a safetensors file, but higl did not write it"),
        (safetensors.numpy.save({"weight": np.zeros(3)}, {"format": "pt"}), "higl did not write it"),
    ],
)
def test_files_that_are_not_policies(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(PolicyFileError, match=message) as caught:
        load_policy(tmp_path / "file")
    assert "header" not in str(caught.value)
