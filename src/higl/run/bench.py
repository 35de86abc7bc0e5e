"""`higl bench`: the cost of each stage of a run, compared with the processor's matrix product rate.

Everything is measured in one run on one machine: a time is meaningful only next to the machine's own matrix product
rate at the same shapes, or next to another algorithm's time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from higl.algo import adjacency as adj
from higl.algo import novelty as nov
from higl.algo import planner
from higl.algo.episodes import collect_episode, in_units
from higl.algo.forward import MLP
from higl.algo.high import RELABEL_DRAWS, relabel
from higl.algo.landmarks import Landmarks, sample_landmarks
from higl.algo.learner import Learner, LearnerState
from higl.algo.policy import Spaces
from higl.algo.products import resolved_precision
from higl.algo.replay import sample
from higl.algo.subgoals import low_view
from higl.algo.walked import WalkedMap
from higl.envs import find_task
from higl.envs.make import make_env
from higl.envs.maps import WALL
from higl.run.checkpoint import Checkpoints, Counters, learner_arrays
from higl.run.files import CHECKPOINT_MINUTES
from higl.run.measure import evaluate, make_test_env
from higl.run.timing import PRODUCTS, ProductRate, best_time
from higl.settings.config import AdjacencyConfig, Algorithm, Config, Precision, Preset
from higl.settings.derive import derive_schedule, derive_settings
from higl.settings.flat import differing, flat_config
from higl.settings.presets import is_derived, preset

# Rounds in which all stages are timed; the best counts, because a slow minute of a shared machine affects only some.
# After the first, another one begins only if it will probably end within this many seconds of the start.
ROUNDS, LIMIT = 3, 80.0
EPISODES_BEFORE = 4
_PLAIN_LINE_SECONDS = 10.0
# Cells of the goal space that a run visits. In a maze these are its floor (112 in Ant Maze U, whose runs found 112 to
# 121). With random actions the arms visited 1,700 in 20,000 steps. For other tasks the number is a guess.
ARM_CELLS, OTHER_CELLS = 1_500, 150
# A map is measured after this many steps of random walks in a region of so many units, by which it is full.
MAP_STEPS, _MAP_WIDTH = 20_000, 10.0


@dataclass(frozen=True)
class Stage:
    """The cost of a stage: seconds and FLOPs of one call, and the number of calls per environment step."""

    name: str
    seconds: float
    calls_per_step: float
    flops: float = 0.0
    part_of: str | None = None

    @property
    def milliseconds_per_step(self) -> float:
        """Return the stage's share of an environment step."""
        return 1e3 * self.seconds * self.calls_per_step

    def share_of(self, rate: float) -> float | None:
        """Return the stage's FLOP/s as a share of the matrix product rate; None if its FLOPs or time are unknown."""
        return self.flops / self.seconds / rate if self.flops and self.seconds else None


def mlp_flops(params: MLP, rows: float) -> float:
    """Return the FLOPs of a network's forward pass over some rows."""
    return sum(2.0 * rows * np.prod(layer.weight.shape) for layer in params)


def td3_flops(state: Any, batch: int, critic_updates: int = 1) -> float:
    """Return the FLOPs of a TD3 update: of the critics, so many times, then of the actor.

    Critics: target actor and both target critics forward; both critics forward and back. Actor: forward and back, and
    the first critic forward and back to its input.
    """
    actor = mlp_flops(state.networks.actor, batch)
    critic = mlp_flops(state.networks.critics[0], batch)
    return critic_updates * (actor + 2 * critic + 2 * 3 * critic) + (3 * actor + 2 * critic)


def explored_cells(config: Config) -> int:
    """Return roughly how many cells of the goal space a run visits."""
    try:
        task = find_task(config.task)
    except ValueError:
        return OTHER_CELLS
    if task.map is None:
        return ARM_CELLS
    floor = sum(symbol != WALL for row in task.map for symbol in row)
    return round(floor * (task.cell / (config.adjacency.cell * config.goal_unit[0])) ** 2)


def adjacency_pairs(config: AdjacencyConfig, cells: int, adjacent_per_cell: float) -> float:
    """Return the number of pairs of cells in one epoch of the adjacency network; see `CellMatrix.pairs`."""
    limit = config.all_pairs_up_to
    if cells <= limit:
        return cells * (cells - 1) / 2
    return limit * (limit - 1) / 2 + cells * adjacent_per_cell


# Says what is being measured.
Tell = Callable[[str], None]


class Bench:
    """Times the stages of one configuration on its real environment."""

    def __init__(self, config: Config, tell: Tell = lambda text: None):
        self.config, self.tell = config, tell
        self._programs: dict[str, Callable[..., jax.Array]] = {}
        self.tell("episodes")
        self.env = make_env(config.task, config.reward, observe_achieved=config.observe_achieved)
        self.learner = Learner(config, Spaces.of(self.env))
        self.stages = self.learner.stages
        episodes = [
            collect_episode(self.env, self.learner.policy, number, explore=True) for number in range(EPISODES_BEFORE)
        ]
        for episode in episodes:
            seen = in_units(episode, self.learner.policy.unit)
            self.learner.matrix.add_trajectory(seen.achieved)
            self.learner.remember(seen)
        self.episode = episodes[-1]
        # The high level's updates run once per episode. An episode that ends with success may be shorter.
        self.episode_steps = max(map(len, episodes))
        self._rng = np.random.default_rng(0)

    def measure(self) -> list[Stage]:
        """Return the cost of every stage that a run with these settings has."""
        grown = self.learner.map
        while grown is not None and grown.visits.sum() * grown.period < MAP_STEPS:
            self._walk(grown)  # before acting is timed: it depends on the size of the map
        stages = [*self._environment(), self._low(), *(self._high() if grown is None else [self._map(grown)])]
        if self.config.uses_novelty:
            stages.append(self._novelty())
        if self.config.uses_adjacency:
            stages.append(self._adjacency())
        return [*stages, self._evaluation()]

    def _environment(self) -> list[Stage]:
        """Time the environment's steps and the policy's actions separately."""
        self.tell("environment")
        policy, count = self.learner.tested_policy, 100
        rng = np.random.default_rng(0)
        low, high = np.asarray(self.learner.spaces.action_low), np.asarray(self.learner.spaces.action_high)
        actions = rng.uniform(low, high, (count, len(low)))

        def step() -> None:
            self.env.reset(seed=0)
            for action in actions:
                _, _, terminated, truncated, _ = self.env.step(action)
                if terminated or truncated:
                    self.env.reset(seed=0)

        seen = list(zip(self.episode.observation, self.episode.achieved, self.episode.desired, strict=True))

        def act() -> None:
            state = policy.begin()
            for place in range(count):
                action, state = policy.step(*seen[place % len(seen)], state, rng)
                policy.environment_action(action)

        return [
            Stage("environment", best_time(step) / count, 1.0),
            Stage("acting", best_time(act) / count, 1.0, mlp_flops(policy.low_actor, 1)),
        ]

    def _low(self) -> Stage:
        """Time the low level's update."""
        self.tell("low update")
        count, learner = 25, self.learner
        seconds = best_time(lambda: learner.train_low(jax.random.key(0), jnp.asarray(count)))
        flops = td3_flops(learner.state.low, self.config.batch_size, self.config.low.critic_updates)
        return Stage("low update", seconds / count, float(self.config.low.updates), flops)

    def _high(self) -> list[Stage]:
        """Time the high level's update, and each of its parts."""
        self.tell("high update")
        config, learner = self.config, self.learner
        count = -(-self.episode_steps // config.high.period)
        per_step = 1 / config.high.period
        learner.steps = max(learner.steps, config.landmarks.start)  # with planning
        whole = best_time(lambda: learner.train_high(jax.random.key(0), jnp.asarray(count))) / count
        state = learner.state
        batch = config.batch_size
        parts = []
        if config.high.relabel:
            rows = batch * config.high.period * (RELABEL_DRAWS + 2)
            flops = mlp_flops(state.low.networks.actor, rows)
            seconds = self._loop("relabel", self._relabel)
            parts.append(Stage("relabel", seconds, per_step, flops, "high update"))
        if config.uses_landmarks:
            parts += self._planner(per_step)
        update = max(whole - sum(part.seconds for part in parts), 0.0)
        flops = td3_flops(state.high, batch)
        if config.uses_adjacency:
            flops += 4 * mlp_flops(state.adjacency.network, batch)
        parts.append(Stage("update", update, per_step, flops, "high update"))
        return [Stage("high update", whole, per_step, sum(part.flops for part in parts)), *parts]

    def _map(self, grown: WalkedMap) -> Stage:
        """Time what happens to a map after each episode: it grows, and the policy gets a chart of it."""
        self.tell("map")

        def add() -> None:
            self._walk(grown)
            grown.chart()

        return Stage("map", best_time(add), 1 / self.episode_steps)

    def _walk(self, grown: WalkedMap) -> None:
        """Add a random walk to a map, as long as an episode."""
        rng, steps = self._rng, self.episode_steps
        ends = np.append(np.arange(0, steps, grown.period), steps)
        walk = np.cumsum(rng.normal(0.0, 0.2, (steps + 1, self.learner.spaces.goal)), axis=0)
        walk += rng.uniform(0.0, _MAP_WIDTH, walk.shape[1])
        folded = np.abs((walk + _MAP_WIDTH) % (2 * _MAP_WIDTH) - _MAP_WIDTH).astype(np.float32)
        grown.add_episode(folded, folded[ends[1:]], ends)

    def _planner(self, per_step: float) -> list[Stage]:
        """Time the planner's parts, each as what it adds to the previous ones."""
        self.tell("planner")
        config, batch = self.config.landmarks, self.config.batch_size
        total = config.coverage + config.novelty
        near = min(planner.NEIGHBOURS, total)
        networks = self.learner.state.low.networks

        def flops(pairs: int) -> float:
            return mlp_flops(networks.actor, pairs) + 2 * mlp_flops(networks.critics[0], pairs)

        sampled = self._loop("landmarks", self._sample_landmarks)
        graph = self._loop("graph", self.stages.graph)
        fixed = jax.jit(self.stages.graph)(self.learner.state, jax.random.key(0))
        weighed = self._loop("weights", self._weigh, fixed)
        selected = self._loop("selection", self._select, fixed)
        pairs = batch * (2 * near + 1)
        return [
            Stage("landmarks", sampled, per_step, 0.0, "high update"),
            Stage("graph", max(graph - sampled, 0.0), per_step, flops(total * total), "high update"),
            Stage("edge weights", weighed, per_step, flops(pairs), "high update"),
            Stage("shortest path", max(selected - weighed, 0.0), per_step, 0.0, "high update"),
        ]

    def _loop(self, name: str, part: Callable[..., Any], *arguments: Any, count: int = 10) -> float:
        """Return the time of one call of a part, from a compiled loop of several calls with different keys.

        The learner's state is an argument: compiled in as constants, its buffers would take a minute.
        """

        def run(state: LearnerState, *arguments: Any) -> jax.Array:
            def body(index: jax.Array, total: jax.Array) -> jax.Array:
                key = jax.random.fold_in(jax.random.key(0), index)
                leaves = jax.tree.leaves(part(state, *arguments, key))
                return total + sum(jnp.sum(leaf.astype(jnp.float32)) for leaf in leaves)

            return jax.lax.fori_loop(0, count, body, jnp.zeros(()))

        program = self._programs.setdefault(name, jax.jit(run))
        return best_time(lambda: program(self.learner.state, *arguments)) / count

    def _rows(self, state: LearnerState, key: jax.Array) -> Any:
        return sample(state.high_buffer, key, self.config.batch_size)

    def _relabel(self, state: LearnerState, key: jax.Array) -> jax.Array:
        stages, actor, rows = self.stages, state.low.networks.actor, self._rows(state, key)
        view = low_view(self.config.low, state.seen)
        return relabel(self.config.high, stages.limit, actor, view, rows, key, stages.affine)

    def _sample_landmarks(self, state: LearnerState, key: jax.Array) -> Landmarks:
        return sample_landmarks(self.config.landmarks, state.low_buffer, state.novelty.queue, key)

    def _query(self, state: LearnerState, key: jax.Array) -> planner.Query:
        rows = self._rows(state, key)
        return planner.Query(rows.observation, rows.achieved, rows.desired)

    def _weigh(self, state: LearnerState, graph: planner.Graph, key: jax.Array) -> planner.EndpointEdges:
        distance, query = self.stages.distance(state), self._query(state, key)
        return planner.endpoint_edges(self.config.landmarks, distance, graph, query)

    def _select(self, state: LearnerState, graph: planner.Graph, key: jax.Array) -> planner.Selection:
        distance, query = self.stages.distance(state), self._query(state, key)
        return planner.plan(self.config.landmarks, distance, graph, query)

    def _novelty(self) -> Stage:
        """Time the novelty predictor's update."""
        self.tell("novelty update")
        count, learner = 50, self.learner
        seconds = best_time(lambda: learner.train_novelty(jax.random.key(0), jnp.asarray(count)))
        flops = 4 * mlp_flops(learner.state.novelty.predictor, nov.BATCH_SIZE)
        return Stage("novelty update", seconds / count, 1.0, flops)

    def _adjacency(self) -> Stage:
        """Time a batch of the adjacency network; each training has several epochs over the pairs of cells."""
        self.tell("adjacency update")
        config, matrix = self.config.adjacency, self.learner.matrix
        pairs = adjacency_pairs(config, explored_cells(self.config), len(matrix.codes) / len(matrix))
        calls = adj.epoch_batches(config, matrix, np.random.default_rng(0))
        batches = jax.tree.map(jnp.asarray, calls[0][0])
        run = partial(self.stages.train_adjacency, self.learner.state.adjacency, batches, adj.CALL_BATCHES)
        per_training = config.epochs * pairs / adj.BATCH_SIZE
        flops = 3 * mlp_flops(self.learner.state.adjacency.network, 2 * adj.BATCH_SIZE)
        return Stage("adjacency update", best_time(run) / adj.CALL_BATCHES, per_training / config.every, flops)

    def _evaluation(self) -> Stage:
        """Time an evaluation episode."""
        self.tell("evaluation")
        env, policy = make_test_env(self.config), self.learner.policy
        seconds = best_time(lambda: evaluate(env, policy, [0]))
        return Stage("evaluation", seconds, self.config.evaluation.episodes / self.config.evaluation.every)

    def checkpoint_seconds(self) -> float:
        """Return the time to save a checkpoint with as many rows as at the end of a run."""
        self.tell("checkpoint")
        state, config = self.learner.state, self.config
        segments = 0 if self.learner.map is not None else -(-config.steps // config.high.period)
        low, high = (
            buffer._replace(size=jnp.asarray(min(config.buffer_size, rows), jnp.int32))
            for buffer, rows in ((state.low_buffer, config.steps), (state.high_buffer, segments))
        )
        self.learner.state = state._replace(low_buffer=low, high_buffer=high)
        with tempfile.TemporaryDirectory() as folder:
            checkpoints = Checkpoints(Path(folder))
            start = time.perf_counter()
            checkpoints.save(learner_arrays(self.learner), Counters())
            seconds = time.perf_counter() - start
        self.learner.state = state
        return seconds


@dataclass(frozen=True)
class Report:
    """The stages of one configuration, beside the machine's matrix product rates in fp32 and bf16 (FLOP/s).

    Those have the same shape in every report, `PRODUCTS`; `same_shape_rate` is the fp32 rate at the shapes of the
    configuration's own networks.
    """

    task: str
    algo: str
    preset: str
    landmarks: int
    relabel: bool
    precision: Precision
    gemm_rate: float
    bf16_gemm_rate: float
    same_shape_rate: float
    stages: list[Stage]
    checkpoint_seconds: float

    @property
    def milliseconds_per_step(self) -> float:
        """Return the time of one environment step, all stages included."""
        return sum(stage.milliseconds_per_step for stage in self.stages if stage.part_of is None)

    @property
    def mflop_equivalents(self) -> float:
        """Return the MFLOPs that the machine's fp32 matrix products perform in the time of one environment step."""
        return 1e-9 * self.milliseconds_per_step * self.gemm_rate

    @property
    def checkpoint_share(self) -> float:
        """Return the share of a run's time spent on checkpoints."""
        return self.checkpoint_seconds / (60 * CHECKPOINT_MINUTES)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        stages = [
            asdict(stage)
            | {"milliseconds_per_step": stage.milliseconds_per_step, "gemm_share": stage.share_of(self.same_shape_rate)}
            for stage in self.stages
        ]
        return asdict(self) | {
            "stages": stages,
            "milliseconds_per_step": self.milliseconds_per_step,
            "mflop_equivalents": self.mflop_equivalents,
            "checkpoint_share": self.checkpoint_share,
        }


def run_bench(config: Config) -> Report:
    """Measure a configuration, together with the machine."""
    return run_benches([config])[0]


def run_benches(configs: list[Config], tell: Tell = lambda text: None) -> list[Report]:
    """Measure configurations and the machine in turns, and keep the best time of each stage.

    On a shared machine, a slow minute would otherwise affect only one of them.
    """
    start = time.monotonic()
    names = [f"{config.algo} on {config.task}" for config in configs]
    benches = [
        Bench(config, lambda text, name=name: tell(f"{name}: {text}"))
        for config, name in zip(configs, names, strict=True)
    ]
    shapes = [(config.batch_size, max(config.hidden)) for config in configs]
    kinds: list[tuple[tuple[int, int], Precision]] = [(PRODUCTS, "fp32"), (PRODUCTS, "bf16")]
    own: list[tuple[tuple[int, int], Precision]] = [(shape, "fp32") for shape in shapes]
    rates = {(shape, precision): ProductRate(*shape, precision) for shape, precision in (*kinds, *own)}
    best = dict.fromkeys(rates, 0.0)
    measured: list[list[list[Stage]]] = [[] for _ in configs]
    for number in range(ROUNDS):
        before = time.monotonic()
        tell("matrix products")
        for kind, rate in rates.items():
            best[kind] = max(best[kind], rate.measure())
        for bench, rounds in zip(benches, measured, strict=True):
            bench.tell(f"round {number + 1} of {ROUNDS}")
            rounds.append(bench.measure())
        if 2 * time.monotonic() - before - start > LIMIT:
            break
    reports = []
    for bench, kind, rounds in zip(benches, own, measured, strict=True):
        stages = [min(same, key=lambda stage: stage.seconds) for same in zip(*rounds, strict=True)]
        reports.append(_report(bench, stages, *(best[each] for each in (*kinds, kind))))
    return reports


def _report(bench: Bench, stages: list[Stage], rate: float, bf16_rate: float, same_shape_rate: float) -> Report:
    config = bench.config
    return Report(
        task=config.task,
        algo=config.algo,
        preset=config.preset,
        landmarks=_landmarks(config),
        relabel=config.high.relabel,
        precision=resolved_precision(config.precision),
        gemm_rate=rate,
        bf16_gemm_rate=bf16_rate,
        same_shape_rate=same_shape_rate,
        stages=stages,
        checkpoint_seconds=bench.checkpoint_seconds(),
    )


def _landmarks(config: Config) -> int:
    """Return the number of landmarks; of a map, the largest."""
    if not config.uses_landmarks:
        return 0
    return config.landmarks.coverage + config.landmarks.novelty * config.uses_novelty


def start_up_seconds(config: Config, tell: Tell = lambda text: None) -> dict[str, float]:
    """Return the seconds from start to a first trained episode, with an empty and with a full cache."""
    code = (
        "from higl.run.process import prepare_process; prepare_process()\n"
        "import json, sys; from higl.run.bench import Bench; from higl.settings.layers import complete_config\n"
        "bench = Bench(complete_config(json.loads(sys.argv[1]))); bench.learner.learn(bench.episode)\n"
    )
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"XDG_CACHE_HOME": folder}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        for name in ("cold", "warm"):
            tell(f"{name} start")
            start = time.perf_counter()
            command = [sys.executable, "-c", code, json.dumps(flat_config(config))]
            subprocess.run(command, check=True, env=environment)
            seconds[name] = time.perf_counter() - start
    return seconds


def print_report(report: Report) -> None:
    """Print the stages as a table."""
    landmarks = f", {report.landmarks} landmarks" if report.landmarks else ""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"{report.algo} on {report.task}, preset {report.preset}{landmarks}"
        f"{', relabelled' if report.relabel else ''}, {report.precision}: "
        f"{report.milliseconds_per_step:.2f} ms per step = {report.mflop_equivalents:.0f} MFLOP-equivalents",
    )
    for name in ("stage", "ms / call", "calls / step", "ms / step", "MFLOP / call", "share of fp32 rate"):
        table.add_column(name, justify="left" if name == "stage" else "right", no_wrap=name == "stage")
    for stage in report.stages:
        share = stage.share_of(report.same_shape_rate)
        table.add_row(
            f"  {stage.name}" if stage.part_of else stage.name,
            f"{1e3 * stage.seconds:.3f}",
            f"{stage.calls_per_step:.3g}",
            f"{stage.milliseconds_per_step:.3f}",
            f"{stage.flops / 1e6:.1f}" if stage.flops else "",
            f"{share:.0%}" if share else "",
        )
    console = Console()
    console.print(table)
    console.print(
        f"matrix products: {report.gemm_rate / 1e9:.1f} GFLOP/s in fp32, {report.bf16_gemm_rate / 1e9:.1f} in bf16, "
        f"{report.same_shape_rate / 1e9:.1f} in fp32 at the shapes of these networks; "
        f"checkpoint at the end of a run: {report.checkpoint_seconds:.2f} s, {report.checkpoint_share:.2%} of a run"
    )


@contextmanager
def telling() -> Generator[Tell]:
    """Show on standard error what is being measured: in a terminal one changing line, elsewhere a line now and then."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("starting") as status:
            yield status.update
        return
    next_line = time.monotonic()

    def tell(text: str) -> None:
        nonlocal next_line
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + _PLAIN_LINE_SECONDS
            print(text, file=sys.stderr, flush=True)

    yield tell


def run(configs: list[Config], json_file: Path | None = None, *, cold: bool = False) -> None:
    """Measure configurations in turns; print the tables, and how each compares with the last."""
    with telling() as tell:
        reports = run_benches(configs, tell)
    for report in reports:
        print_report(report)
    last = reports[-1]
    for report in reports[:-1]:
        ratio = report.milliseconds_per_step / last.milliseconds_per_step
        print(f"an environment step of {report.algo} costs {ratio:.2f} x that of {last.algo}")
    result: dict[str, Any] = {"reports": [report.as_dict() for report in reports]}
    if cold:
        with telling() as tell:
            result["start_up_seconds"] = start_up_seconds(configs[0], tell)
        print(
            "start-up to the first trained episode: {cold:.1f} s cold, {warm:.1f} s warm".format(
                **result["start_up_seconds"]
            )
        )
    if json_file is not None:
        json_file.write_text(json.dumps(result, indent=2) + "\n")


def bench_configs(
    task: str,
    algos: tuple[Algorithm, ...],
    family: Preset = "best",
    *,
    landmarks: int | None = None,
    relabel_subgoals: bool | None = None,
    precision: Precision = "auto",
) -> list[Config]:
    """Return the settings of a run with each algorithm: of a preset, with landmarks of each kind and relabelling."""
    configs = []
    for algo in algos:
        config = preset(task, algo, family)
        if landmarks is not None:
            config = replace(config, landmarks=replace(config.landmarks, coverage=landmarks, novelty=landmarks))
        if relabel_subgoals is not None:
            config = replace(config, high=replace(config.high, relabel=relabel_subgoals))
        configs.append(as_trained(replace(config, precision=precision)))
    return configs


def as_trained(config: Config) -> Config:
    """Return the settings with which a run begins: what `higl train` would derive is derived.

    A setting that differs from the preset counts as given.
    """
    if not is_derived(config):
        return config
    given = differing(preset(config.task, config.algo, config.preset), config)
    config, found = derive_settings(config, given, make_env(config.task, config.reward))
    return derive_schedule(config, given, found=found)[0]
