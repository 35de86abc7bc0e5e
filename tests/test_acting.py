"""`load_policy`: acts like an agent, from a file, a run folder or a task's name, without the packages of training."""

import importlib.metadata
import json
import subprocess
import sys

import numpy as np
import pytest
from support.reach import SMALL, ReachEnv

import higl
from higl.errors import PolicyFileError, RunFolderError
from higl.pretrained import FOLDER
from higl.run.files import POLICY

ANT = FOLDER / "ant-maze-u-sparse-higl"

# All that acting imports; docs/installation.md names them. No JAX, no MuJoCo, no Gymnasium.
ACTING_PACKAGES = {"numpy", "safetensors", "msgspec", "tomli_w"}
# What only training needs.
TRAINING_PACKAGES = {"jax", "jaxlib", "optax", "gymnasium", "mujoco", "matplotlib"}

ACT = """
import json, sys
import numpy, higl
policy = higl.load_policy(sys.argv[1])
parts = {"observation": policy.observation_size, "achieved_goal": policy.spaces.goal,
         "desired_goal": policy.spaces.goal}
observation = {name: numpy.zeros(size) for name, size in parts.items()}
action, state = policy.predict(observation)
action, state = policy.predict(observation, state, deterministic=False)
print(json.dumps({"action": list(action), "modules": sorted({name.partition(".")[0] for name in sys.modules})}))
"""


@pytest.fixture(scope="module", params=[False, True], ids=["observation", "observation and achieved goal"])
def agent(request) -> higl.HIGL:
    settings = SMALL | {"observe_achieved": request.param, "low": {**SMALL.get("low", {}), "hidden_entries": (0, 1)}}
    return higl.HIGL(lambda: ReachEnv(2, steps=20), verbose=False, **settings)


def observations(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    space = ReachEnv(2, steps=20).observation_space
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(count, *part.shape)).astype(np.float32) for name, part in space.spaces.items()}


@pytest.mark.parametrize("walks_map", [False, True])
def test_acting_imports_nothing_of_training(walks_map, agent, tmp_path):
    """With networks alone, and with the shipped ant, whose observation has 30 numbers and which walks a map."""
    agent.save(tmp_path / "policy.safetensors")
    policy = "ant-maze-u" if walks_map else str(tmp_path / "policy.safetensors")
    done = subprocess.run([sys.executable, "-c", ACT, policy], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert len(printed["action"]) == (8 if walks_map else 2)
    installed = set(printed["modules"]) & importlib.metadata.packages_distributions().keys()
    assert not installed & TRAINING_PACKAGES
    # msgspec imports typing_extensions if it is there; setuptools adds _distutils_hack to every process.
    installed -= {"higl", "typing_extensions", "_distutils_hack"}
    # A map needs SciPy, and whatever that imports.
    assert installed >= ACTING_PACKAGES | {"scipy"} if walks_map else installed == ACTING_PACKAGES


def test_a_policy_prints_its_task_and_sizes(agent, tmp_path):
    assert repr(higl.load_policy("ant-maze-u")) == (
        "<Policy('ant-maze-u', algo='higl', seed=360): observation 30, goal 2, action 8; a map of 615 landmarks; "
        "a subgoal every 10 steps; of a run of 300,000 steps>"
    )
    agent.save(tmp_path / "policy.safetensors")
    size = ReachEnv(2, steps=20).observation_space["observation"].shape[0]
    assert f": observation {size}, goal 2, action " in repr(higl.load_policy(tmp_path / "policy.safetensors"))


def test_importing_higl_imports_nothing_else():
    code = "import sys, higl; assert 'HIGL' in dir(higl); assert 'numpy' not in sys.modules; print(higl.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == higl.__version__, done.stderr


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_loaded_policy_acts_as_its_agent(agent, deterministic, tmp_path):
    """Single observations over three subgoals, then a batch whose episodes begin at different times: bit for bit."""
    agent.save(tmp_path / "policy.safetensors")
    policy = higl.load_policy(tmp_path / "policy.safetensors")
    one = other = None
    for step in range(25):
        observation = {name: part[0] for name, part in observations(1, step).items()}
        action, one = policy.predict(observation, one, deterministic=deterministic, dtype=np.float32)
        expected, other = higl.HIGL.predict(agent, observation, other, deterministic=deterministic)
        assert action.shape == (2,)
        np.testing.assert_array_equal(action, expected)
        np.testing.assert_array_equal(one.subgoal, other.subgoal)
        if step == 0:
            assert np.array_equal(action, policy.predict(observation, dtype=np.float32)[0]) == deterministic
    one = other = None
    for step in range(8):
        begins = np.array([False, step == 3, step == 5])
        action, one = policy.predict(observations(3, step), one, begins, deterministic, dtype=np.float32)
        expected, other = agent.predict(observations(3, step), other, begins, deterministic)
        assert action.shape == (3, 2)
        np.testing.assert_array_equal(action, expected)
    assert one.clock.tolist() == [8, 5, 3]


def test_a_file_a_run_folder_and_a_task_name_are_the_same_policy():
    places = [ANT / POLICY, str(ANT / POLICY), ANT, "ant-maze-u", "higl/AntMazeU-v0"]
    policies = [higl.load_policy(place) for place in places]
    for policy in policies:
        assert policy.config.task == "ant-maze-u"
        np.testing.assert_array_equal(policy.low_actor[0].weight, policies[0].low_actor[0].weight)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("runs/missing", RunFolderError, r"runs/missing does not exist, .*: .*ant-maze-u-sparse-higl, "),
        ("empty", RunFolderError, "empty is neither a run folder nor a policy file"),
        ("other.txt", PolicyFileError, "other.txt is a text file, not a policy"),
    ],
)
def test_what_is_no_policy_is_rejected_in_one_line(path, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.txt").write_text("not a policy")
    with pytest.raises(error, match=message) as raised:
        higl.load_policy(path)
    assert "\n" not in str(raised.value)
