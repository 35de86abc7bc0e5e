"""A policy as one ONNX graph, which runs without Python: both levels, the subgoal clock and the scaling of actions.

The graph is a pure function, `Policy.predict` without exploration: it takes the parts of an observation and the state
of the last step, and returns the action and the next state. docs/deployment.md describes its inputs and outputs.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from higl import __version__
from higl.algo.forward import MLP
from higl.algo.policy import Policy
from higl.algo.subgoals import View
from higl.errors import ExportError
from higl.run.files import replace_file
from higl.settings.config import GOAL_REGION

if TYPE_CHECKING:
    import onnx

# Old enough for every runtime of the last years; the graph needs nothing newer.
_OPSET, _IR_VERSION = 17, 8

_ABOUT = (
    "A policy trained with higl. Feed next_subgoal, next_achieved and next_clock back as state_subgoal, state_achieved "
    "and state_clock; at the start of an episode they are zero (state_clock = 0 is enough)."
)


def save_onnx(path: Path, policy: Policy) -> None:
    """Write a policy as an ONNX file.

    Raises:
        ExportError: the package onnx is not installed, or the policy walks a map.
    """
    if policy.config.walks_map:
        raise ExportError(
            'this policy finds its way on a map (landmarks.graph = "walked"), which is no network; '
            "higl.load_policy runs it without JAX"
        )
    try:
        import onnx
    except ImportError:
        raise ExportError("this needs the extra `onnx`: pip install 'higl[onnx]'") from None
    model = onnx_model(policy)
    onnx.checker.check_model(model, full_check=True)
    replace_file(path, model.SerializeToString())


def onnx_model(policy: Policy) -> onnx.ModelProto:
    """Return a policy as an ONNX model; `N` is the number of observations in a batch."""
    import onnx

    graph, config, spaces = _Graph(), policy.config, policy.spaces
    observed = spaces.observation - spaces.goal * config.observe_achieved
    real, whole = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    inputs = [
        _value("observation", real, observed),
        _value("achieved_goal", real, spaces.goal),
        _value("desired_goal", real, spaces.goal),
        _value("state_subgoal", real, spaces.goal),
        _value("state_achieved", real, spaces.goal),
        _value("state_clock", whole),
    ]
    observation = "observation"
    if config.observe_achieved:
        observation = graph.add("Concat", "achieved_goal", "observation", axis=-1)
    achieved, desired = (
        graph.add("Div", goal, graph.constant(policy.unit)) for goal in ("achieved_goal", "desired_goal")
    )
    _add_subgoal(graph, policy, observation, achieved, desired)
    _add_action(graph, policy, observation)
    graph.add("Identity", achieved, output="next_achieved")
    graph.add("Add", "state_clock", graph.constant(np.int64(1)), output="next_clock")
    outputs = [
        _value("action", real, spaces.action),
        _value("next_subgoal", real, spaces.goal),
        _value("next_achieved", real, spaces.goal),
        _value("next_clock", whole),
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="higl",
        producer_version=__version__,
        doc_string=_ABOUT,
    )
    facts = {"task": config.task, "algo": config.algo, "period": str(policy.period)}
    onnx.helper.set_model_props(model, facts | {"config": json.dumps(asdict(config))})
    return model


def _add_subgoal(graph: _Graph, policy: Policy, observation: str, achieved: str, desired: str) -> None:
    """Add the subgoal clock: a new subgoal every m steps, in between the goal transition h(g, s, s')."""
    phase = graph.add("Mod", "state_clock", graph.constant(np.int64(policy.period)))
    due = graph.add("Equal", phase, graph.constant(np.int64(0)))
    due = graph.add("Unsqueeze", due, graph.constant(np.array([1])))
    parts, view = [observation, desired], policy.views.high
    if view is not None:
        offset = graph.add("Div", graph.add("Sub", desired, achieved), graph.constant(np.float32(GOAL_REGION)))
        parts = [*_add_seen(graph, view, observation), _add_bound(graph, view, offset)]
    seen = graph.add("Concat", *parts, axis=-1)
    proposed = graph.add("Mul", _add_actor(graph, policy.high_actor, seen), graph.constant(policy.limit))
    kept = "state_subgoal"
    if policy.scheme == "relative":
        kept = graph.add("Sub", graph.add("Add", kept, "state_achieved"), achieved)
    graph.add("Where", due, proposed, kept, output="next_subgoal")


def _add_action(graph: _Graph, policy: Policy, observation: str) -> None:
    """Add the low level's action in the environment's units."""
    seen = _add_seen(graph, policy.views.low, observation)
    acted = _add_actor(graph, policy.low_actor, graph.add("Concat", *seen, "next_subgoal", axis=-1))
    scaled = graph.add("Mul", acted, graph.constant(np.float32(policy.calm)))
    low, high = (np.asarray(bound, np.float32) for bound in (policy.action_low, policy.action_high))
    share = graph.add("Add", scaled, graph.constant(np.float32(1.0)))
    moved = graph.add("Add", graph.add("Mul", share, graph.constant((high - low) / 2)), graph.constant(low))
    graph.add("Min", graph.add("Max", moved, graph.constant(low)), graph.constant(high), output="action")


def _add_seen(graph: _Graph, view: View, observation: str) -> list[str]:
    """Add the observation through a view, and sine and cosine of its angles if it has any."""
    seen = graph.add("Mul", graph.add("Sub", observation, graph.constant(view.centre)), graph.constant(view.factor))
    parts = [_add_bound(graph, view, seen)]
    if len(view.angles):
        angles = graph.add("Gather", observation, graph.constant(np.asarray(view.angles, np.int64)), axis=-1)
        parts += [graph.add("Sin", angles), graph.add("Cos", angles)]
    return parts


def _add_bound(graph: _Graph, view: View, x: str) -> str:
    """Add the bound of a view."""
    return graph.add("Min", graph.add("Max", x, graph.constant(-view.bound)), graph.constant(view.bound))


def _add_actor(graph: _Graph, actor: MLP, x: str) -> str:
    """Add an actor, tanh at its end, and return its output within [-1, 1]."""
    for place, layer in enumerate(actor):
        if place:
            x = graph.add("Relu", x)
        x = graph.add("Gemm", x, graph.constant(layer.weight), graph.constant(layer.bias))
    return graph.add("Tanh", x)


class _Graph:
    """The nodes and constants of a graph under construction."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        import onnx

        name = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, array: Any) -> str:
        """Add a constant and return its name."""
        import onnx

        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(np.shape(array)), name))
        return name


def _value(name: str, kind: int, *sizes: int) -> onnx.ValueInfoProto:
    """Return an input or output: a batch of N."""
    import onnx

    return onnx.helper.make_tensor_value_info(name, kind, ["N", *sizes])
