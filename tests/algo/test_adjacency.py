"""Adjacency: labels by hand and against a plain model, the loss by hand, and a training that separates cells."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from higl.algo import adjacency as adj
from higl.algo.forward import Layer
from higl.algo.health import adjacency_metrics
from higl.settings.config import AdjacencyConfig


def line(*columns: float) -> np.ndarray:
    """Return points of the plane with these x and y = 0."""
    return np.stack([np.asarray(columns, np.float32), np.zeros(len(columns), np.float32)], axis=1)


def adjacent_cells(matrix: adj.CellMatrix) -> set[frozenset[tuple[int, ...]]]:
    """Return the adjacent pairs of different cells, by the cells themselves."""
    cells = [tuple(int(x) for x in cell) for cell in matrix.cells]
    first, second = np.triu_indices(len(cells), 1)
    return {
        frozenset([cells[i], cells[j]])
        for i, j, adjacent in zip(first, second, matrix.is_adjacent(first, second), strict=True)
        if adjacent
    }


def test_labels_by_hand():
    """With k = 3, cells one and two steps apart are adjacent, those three apart are not."""
    matrix = adj.CellMatrix(1.0, 3, 2)
    matrix.add_trajectory(line(0.1, -0.2, 1.4, 1.6, 3.0, 4.0))
    # Cells: 0, 0, 1, 2, 3, 4.
    assert [int(x) for x in matrix.cells[:, 0]] == [0, 1, 2, 3, 4]
    pairs = {frozenset([(i, 0), (j, 0)]) for i, j in [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]}
    assert adjacent_cells(matrix) == pairs
    assert matrix.adjacent_share == pytest.approx(7 / 10)
    assert matrix.is_adjacent(np.array([2]), np.array([2])).all()


def test_a_later_trajectory_only_adds_pairs():
    matrix = adj.CellMatrix(1.0, 2, 2)
    matrix.add_trajectory(line(0, 1, 2))
    before = adjacent_cells(matrix)
    matrix.add_trajectory(line(2, 0, 5))
    assert adjacent_cells(matrix) == before | {frozenset([(0, 0), (2, 0)]), frozenset([(0, 0), (5, 0)])}


def test_trajectories_are_not_joined():
    matrix = adj.CellMatrix(1.0, 5, 2)
    matrix.add_trajectory(line(0, 1))
    matrix.add_trajectory(line(7, 8))
    assert adjacent_cells(matrix) == {frozenset([(0, 0), (1, 0)]), frozenset([(7, 0), (8, 0)])}


@settings(max_examples=60)
@given(
    trajectories=st.lists(
        st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=12), min_size=1, max_size=4
    ),
    degree=st.integers(1, 6),
    cell=st.sampled_from([1.0, 0.1, 2.5]),
)
def test_labels_against_a_plain_model(trajectories, degree, cell):
    matrix = adj.CellMatrix(cell, degree, 2)
    expected, seen = set(), []
    for trajectory in trajectories:
        matrix.add_trajectory(np.asarray(trajectory, np.float32) * cell)
        seen += [each for each in trajectory if each not in seen]
        for i in range(len(trajectory)):
            for j in range(i + 1, len(trajectory)):
                if j - i < degree and trajectory[i] != trajectory[j]:
                    expected.add(frozenset([trajectory[i], trajectory[j]]))
    assert [tuple(int(x) for x in each) for each in matrix.cells] == list(dict.fromkeys(seen))
    assert adjacent_cells(matrix) == expected
    np.testing.assert_allclose(matrix.points, matrix.cells * np.float32(cell), rtol=1e-6)


def test_it_grows_without_limit():
    matrix = adj.CellMatrix(1.0, 3, 2)
    for row in range(20):
        matrix.add_trajectory(line(*range(row * 500, (row + 1) * 500)))
    assert len(matrix) == 10_000
    # Within a trajectory of 500 cells: 499 pairs one step apart, 498 two.
    assert len(matrix.codes) == 20 * (499 + 498)
    assert matrix.is_adjacent(np.array([9_998]), np.array([9_999])).all()
    assert not matrix.is_adjacent(np.array([9_996]), np.array([9_999])).any()


def test_all_pairs_are_trained_on_up_to_the_limit():
    matrix = adj.CellMatrix(1.0, 2, 2)
    matrix.add_trajectory(line(0, 1, 2, 3))
    first, second, label = matrix.pairs(4, np.random.default_rng(0))
    expected = {(0, 1): 1, (0, 2): 0, (0, 3): 0, (1, 2): 1, (1, 3): 0, (2, 3): 1}
    assert dict(zip(zip(first.tolist(), second.tolist(), strict=True), label.tolist(), strict=True)) == expected
    assert len(first) == 6


def test_past_the_limit_every_adjacent_pair_and_a_sample_of_the_others():
    matrix = adj.CellMatrix(1.0, 2, 2)
    matrix.add_trajectory(line(*range(200)))
    first, second, label = matrix.pairs(40, np.random.default_rng(0))
    assert (first < second).all()
    np.testing.assert_array_equal(label, second - first == 1)
    adjacent = {(int(i), int(j)) for i, j, one in zip(first, second, label, strict=True) if one}
    assert adjacent == {(i, i + 1) for i in range(199)}
    # As many others as 40 cells have pairs, but for draws of a cell with itself; and not the same ones again.
    assert 0.9 * 780 < (label == 0).sum() <= 780
    again, _, _ = matrix.pairs(40, np.random.default_rng(1))
    assert not np.array_equal(again[:700], first[:700])
    # Others come from all over the cells.
    assert set((first[label == 0] // 50).tolist()) == {0, 1, 2, 3}


def test_save_and_restore():
    matrix = adj.CellMatrix(0.5, 3, 2)
    matrix.add_trajectory(line(0, 1, 2, 3))
    copy = adj.CellMatrix(0.5, 3, 2)
    copy.restore({name: array.copy() for name, array in matrix.arrays().items()})
    for each in (matrix, copy):
        each.add_trajectory(line(3, 9, 0))
    np.testing.assert_array_equal(matrix.cells, copy.cells)
    np.testing.assert_array_equal(matrix.codes, copy.codes)


# The embedding is the point itself, so that distances are known.
IDENTITY = (Layer(jnp.eye(2), jnp.zeros(2)),)


def test_contrastive_loss_by_hand():
    """Equation 5: adjacent pairs pay beyond epsilon, others within epsilon + delta."""
    config = AdjacencyConfig(delta=0.5)
    distances = [0.4, 2.0, 0.4, 1.2, 3.0, 0.4]
    labels = [1, 1, 0, 0, 0, 1]
    weights = [1, 1, 1, 1, 1, 0]
    expected = [0.0, 1.0, 1.1, 0.3, 0.0]
    pairs = adj.Pairs(jnp.zeros((6, 2)), jnp.asarray(line(*distances)), jnp.array(labels), jnp.array(weights))
    assert float(adj.adjacency_loss(config, IDENTITY, pairs)) == pytest.approx(sum(expected) / 5)


def test_padding_has_no_gradient():
    config = AdjacencyConfig()
    pairs = adj.Pairs(jnp.zeros((3, 2)), jnp.zeros((3, 2)), jnp.zeros(3), jnp.zeros(3))
    gradient = jax.grad(lambda network: adj.adjacency_loss(config, network, pairs))(IDENTITY)
    assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient))


def test_embedding_distance_by_hand():
    first, second = jnp.array([[0.0, 0.0], [1.0, 1.0]]), jnp.array([[3.0, 4.0], [1.0, 1.0]])
    np.testing.assert_allclose(adj.embedding_distance(IDENTITY, first, second), [5.0, 0.0])


def test_an_epoch_sees_every_pair_once_in_random_order(monkeypatch):
    monkeypatch.setattr(adj, "CALL_BATCHES", 3)
    monkeypatch.setattr(adj, "BATCH_SIZE", 4)
    matrix = adj.CellMatrix(1.0, 2, 2)
    matrix.add_trajectory(line(*range(7)))
    calls = adj.epoch_batches(AdjacencyConfig(), matrix, np.random.default_rng(0))
    # 21 pairs in batches of four are six batches: two calls of three.
    assert [count for _, count in calls] == [3, 3]
    seen = []
    for batches, _ in calls:
        assert batches.first.shape == (3, 4, 2)
        real = batches.weight > 0
        np.testing.assert_array_equal(batches.adjacent[real], (batches.second - batches.first)[real][:, 0] == 1)
        seen += [(int(i), int(j)) for i, j in zip(batches.first[real][:, 0], batches.second[real][:, 0], strict=True)]
    everything = [(i, j) for i in range(7) for j in range(i + 1, 7)]
    assert sorted(seen) == everything
    assert seen != everything


def test_only_the_real_batches_are_trained_on():
    config = AdjacencyConfig()
    state = adj.init_adjacency(jax.random.key(0), 2)
    rng = np.random.default_rng(0)
    batches = adj.Pairs(
        rng.normal(size=(3, 5, 2)).astype(np.float32),
        rng.normal(size=(3, 5, 2)).astype(np.float32),
        np.zeros((3, 5), np.float32),
        np.ones((3, 5), np.float32),
    )
    train = jax.jit(lambda state, batches, count: adj.train_batches(config, state, batches, count))
    two, _ = train(state, batches, 2)
    poisoned = batches._replace(first=np.concatenate([batches.first[:2], np.full((1, 5, 2), np.nan, np.float32)]))
    same, loss = train(state, poisoned, 2)
    for a, b in zip(jax.tree.leaves(two), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.isfinite(loss)
    three, _ = train(state, batches, 3)
    assert not np.array_equal(three.network[0].weight, two.network[0].weight)


def test_training_separates_adjacent_cells_from_the_others():
    """Cells of a U, whose two arms are near in the goal space and far apart in steps."""
    config = AdjacencyConfig(degree=3, epochs=25, delta=0.2)
    matrix = adj.CellMatrix(1.0, config.degree, 2)
    arms = [(x, 0) for x in range(8)] + [(8, 0), (8, 1), (8, 2)] + [(x, 2) for x in range(7, -1, -1)]
    matrix.add_trajectory(np.asarray(arms, np.float32))
    state = adj.init_adjacency(jax.random.key(0), 2)
    rng = np.random.default_rng(0)
    before = adjacency_metrics(config, jax.device_get(state.network), matrix, rng)
    assert min(before["adjacency/adjacent_right"], before["adjacency/other_right"]) < 0.8
    train = jax.jit(lambda state, batches, count: adj.train_batches(config, state, batches, count))
    losses = []
    for _ in range(8 * config.epochs):
        for batches, count in adj.epoch_batches(config, matrix, rng):
            state, loss = train(state, batches, count)
            losses.append(float(loss) / count)
    after = adjacency_metrics(config, jax.device_get(state.network), matrix, rng)
    assert losses[-1] < 0.1 * losses[0]
    assert after["adjacency/adjacent_right"] > 0.95
    assert after["adjacency/other_right"] > 0.95
    # The ends of the arms: two cells apart in the goal space, twenty steps apart.
    ends = adj.embedding_distance(state.network, jnp.array([0.0, 0.0]), jnp.array([0.0, 2.0]))
    assert float(ends) > adj.EPSILON
