"""The ONNX graph against `Policy.predict`, run by onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.toy import SPACES, changed, random_policy, tiny_config

from higl.algo.policy import Policy, Spaces
from higl.algo.subgoals import Statistics, views_of
from higl.envs.make import make_env
from higl.errors import ExportError
from higl.observations import as_batches
from higl.run.onnx_file import onnx_model, save_onnx
from higl.settings.config import Config
from higl.settings.presets import preset

pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime")

RELATIVE = tiny_config()
ACHIEVED_IN_FRONT = Spaces(SPACES.observation + SPACES.goal, SPACES.goal, SPACES.action_low, SPACES.action_high)
UNITS = changed(RELATIVE, goal_unit=(2.0, 0.5), low={"normalise": True})
ANGLES = changed(UNITS, low={"angles": (1,)})
SEEN = Statistics(np.float32(9), np.float32([0.5, -1.0, 0.1]), np.float32([0.1, 2.0, 0.0]))


def in_units(config: Config = UNITS) -> Policy:
    """Return a policy with units of the goal space that normalises; some entries are beyond the bound."""
    plain = random_policy(config)
    return Policy(config, SPACES, plain.low_actor, plain.high_actor, views_of(config, SEEN))


TOYS = {
    "relative": random_policy(RELATIVE),
    "absolute": random_policy(changed(RELATIVE, high={"subgoals": "absolute"})),
    "achieved goal in front": random_policy(changed(RELATIVE, observe_achieved=True), spaces=ACHIEVED_IN_FRONT),
    "units": in_units(),
    "a share of the actions": random_policy(changed(RELATIVE, low={"action_share": 0.3})),
    "angles": random_policy(changed(RELATIVE, low={"angles": (0, 2), "hidden_entries": ()})),
    "angles, the rest normalised": in_units(ANGLES),
    "hrac": in_units(changed(ANGLES, algo="hrac", high={"relabel": True})),
    "hrac, absolute": in_units(changed(ANGLES, algo="hrac", high={"subgoals": "absolute"})),
}


class Graph:
    """A policy in onnxruntime, with the state fed back."""

    def __init__(self, policy: Policy, folder: Path, rows: int):
        save_onnx(folder / "policy.onnx", policy)
        self.session = onnxruntime.InferenceSession(folder / "policy.onnx")
        zeros = np.zeros((rows, policy.spaces.goal), np.float32)
        self.state = {"state_subgoal": zeros, "state_achieved": zeros, "state_clock": np.zeros(rows, np.int64)}

    def act(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        action, *state = self.session.run(None, observation | self.state)
        self.state = dict(zip(self.state, state, strict=True))
        return action


@pytest.mark.parametrize("policy", TOYS.values(), ids=TOYS.keys())
def test_the_graph_acts_as_the_policy(policy, tmp_path):
    """Three rows over seven subgoals; one row begins a new episode on the way."""
    graph, state, rng = Graph(policy, tmp_path, 3), None, np.random.default_rng(0)
    for step in range(35):
        sizes = {"observation": SPACES.observation, "achieved_goal": SPACES.goal, "desired_goal": SPACES.goal}
        observation = {part: rng.normal(size=(3, size)).astype(np.float32) for part, size in sizes.items()}
        begins = np.array([False, step == 13, False])
        graph.state["state_clock"][begins] = 0
        expected, state = policy.predict(observation, state, begins)
        action = graph.act(observation)
        np.testing.assert_allclose(action, expected, atol=1e-5)
        np.testing.assert_allclose(graph.state["state_subgoal"], state.subgoal, atol=1e-5)
        np.testing.assert_array_equal(graph.state["state_clock"], state.clock)
    assert action.dtype == np.float32


@pytest.mark.parametrize("task", ["ant-maze-u", "pusher"])
def test_the_graph_of_a_policy_acts_in_its_task(task, tmp_path):
    """Each level is compared on the same input: small differences of a subgoal grow in the network below it."""
    env = make_env(task, "sparse", "test")
    policy = random_policy(preset(task, "hrac", "paper"), spaces=Spaces.of(env))
    graph, state = Graph(policy, tmp_path, 1), None
    observation, _ = env.reset(seed=0)
    half_range = (policy.action_high - policy.action_low) / 2
    for _ in range(60):
        parts = as_batches(observation)
        action = graph.act(parts)
        _, state = policy.predict(parts, state)
        subgoal = graph.state["state_subgoal"]
        np.testing.assert_allclose(subgoal / policy.limit, state.subgoal / policy.limit, atol=1e-5)
        expected = policy.environment_action(policy.act(parts["observation"], subgoal, None))
        np.testing.assert_allclose(action / half_range, expected / half_range, atol=1e-5)
        assert env.action_space.contains(action[0].astype(env.action_space.dtype))
        observation, *_ = env.step(action[0])


def test_a_policy_that_walks_a_map_is_not_exported(tmp_path):
    policy = random_policy(changed(RELATIVE, landmarks={"graph": "walked"}))
    with pytest.raises(ExportError, match=r"finds its way on a map .*which is no network; higl\.load_policy"):
        save_onnx(tmp_path / "policy.onnx", policy)
    assert not (tmp_path / "policy.onnx").exists()


def test_the_graph_says_what_it_is():
    model = onnx_model(random_policy(RELATIVE))
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert (facts["task"], facts["period"], model.producer_name) == ("point", "5", "higl")
    inputs, outputs = ([value.name for value in values] for values in (model.graph.input, model.graph.output))
    assert inputs[:3] == ["observation", "achieved_goal", "desired_goal"]
    assert inputs[3:] == ["state_subgoal", "state_achieved", "state_clock"]
    assert outputs == ["action", "next_subgoal", "next_achieved", "next_clock"]
