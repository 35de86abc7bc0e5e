"""Novelty: the queue against a plain model; the score falls where the predictor has been trained."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from higl.algo import novelty as nov
from higl.algo.forward import Layer
from higl.settings.config import NoveltyConfig

SLOTS, BLOCK = 4, 6


def new_states(states: list[tuple[float, float]], first_name: int) -> nov.Queue:
    """Return a block of states on a line, (place, score); each observation is the state's name."""
    count = len(states)
    observation, achieved, score = np.zeros((BLOCK, 1)), np.zeros((BLOCK, 1)), np.zeros(BLOCK)
    observation[:count, 0] = np.arange(first_name, first_name + count)
    if count:
        achieved[:count, 0], score[:count] = zip(*states, strict=True)
    return nov.Queue(*(jnp.asarray(x, jnp.float32) for x in (observation, achieved, score)), jnp.arange(BLOCK) < count)


def empty_queue() -> nov.Queue:
    return nov.Queue(jnp.zeros((SLOTS, 1)), jnp.zeros((SLOTS, 1)), jnp.zeros(SLOTS), jnp.zeros(SLOTS, bool))


CONFIG = NoveltyConfig(similarity=0.5)
# An adjacency network that maps every point to the same embedding.
CONSTANT = (Layer(jnp.zeros((1, 1)), jnp.zeros(1)),)


def update(queue: nov.Queue, new: nov.Queue, config: NoveltyConfig = CONFIG, network=CONSTANT) -> nov.Queue:
    return nov.enter(nov.discard_similar(config, queue, new, network), new)


_update = jax.jit(update)

places = st.integers(-12, 12).map(lambda x: x / 4)
episodes = st.lists(st.lists(places, max_size=BLOCK), max_size=5)


@settings(max_examples=100)
@given(episodes=episodes, seed=st.integers(0, 1000))
def test_the_queue_against_a_plain_model(episodes, seed):
    """Drop what is closer than 0.5 (0.5 itself stays) to a new state, take all new ones, keep the most novel."""
    rng = np.random.default_rng(seed)
    queue, model, name = empty_queue(), [], 0
    for episode in episodes:
        # Scores are all different, so that there is one right answer.
        states = [(place, float(np.float32(rng.random()))) for place in episode]
        queue = _update(queue, new_states(states, name))
        model = [kept for kept in model if all(abs(kept[0] - place) >= 0.5 for place, _ in states)]
        model += [(place, score, name + number) for number, (place, score) in enumerate(states)]
        model = sorted(model, key=lambda state: -state[1])[:SLOTS]
        name += len(states)
        filled = np.asarray(queue.filled)
        ours = zip(queue.achieved[filled, 0], queue.score[filled], queue.observation[filled, 0], strict=True)
        assert {tuple(float(x) for x in state) for state in ours} == set(model)
        assert filled.sum() == len(model)


def test_the_measure_of_similarity_is_a_setting():
    """The appendix's design: for a constant adjacency network everything is similar."""
    stored = _update(empty_queue(), new_states([(0.0, 1.0), (10.0, 2.0)], 0))
    new = new_states([(10.1, 3.0)], 2)
    by_goal = update(stored, new)
    assert sorted(np.asarray(by_goal.achieved[by_goal.filled, 0]).tolist()) == pytest.approx([0.0, 10.1])
    everything_similar = update(stored, new, replace(CONFIG, discard="adjacency"))
    assert np.asarray(everything_similar.achieved[everything_similar.filled, 0]).tolist() == pytest.approx([10.1])


def test_lambda_is_a_distance_of_embeddings_not_of_steps():
    """For a network that doubles distances, 0.2 away is 0.4 in embeddings: closer than 0.5. In steps it would be 2."""
    doubling = (Layer(jnp.full((1, 1), 2.0), jnp.zeros(1)),)
    stored = _update(empty_queue(), new_states([(0.0, 1.0), (0.5, 2.0)], 0))
    queue = update(stored, new_states([(0.2, 3.0)], 2), replace(CONFIG, discard="adjacency"), doubling)
    assert sorted(np.asarray(queue.achieved[queue.filled, 0]).tolist()) == pytest.approx([0.2, 0.5])


def test_padding_neither_enters_nor_discards():
    stored = _update(empty_queue(), new_states([(0.0, 1.0)], 0))
    padded = nov.Queue(jnp.zeros((BLOCK, 1)), jnp.zeros((BLOCK, 1)), jnp.full(BLOCK, 9.0), jnp.zeros(BLOCK, bool))
    queue = _update(stored, padded)
    assert np.asarray(queue.filled).sum() == 1
    assert np.asarray(queue.score[queue.filled]).tolist() == [1.0]


def test_novelty_by_hand():
    """Equation 4: the distance of the two networks' outputs."""
    state = nov.init_novelty(jax.random.key(0), 3, 2, SLOTS)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

    def output(network) -> np.ndarray:
        first, second, last = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in network]
        hidden = np.maximum(x @ first[0] + first[1], 0)
        hidden = np.maximum(hidden @ second[0] + second[1], 0)
        return hidden @ last[0] + last[1]

    expected = np.linalg.norm(output(state.predictor) - output(state.target), axis=1)
    scores = nov.novelty(state, jnp.asarray(x))
    np.testing.assert_allclose(scores, expected, rtol=1e-4)


def test_novelty_falls_where_the_predictor_is_trained_and_stays_elsewhere():
    state = nov.init_novelty(jax.random.key(0), 2, 2, SLOTS)
    rng = np.random.default_rng(0)
    known = jnp.asarray(rng.normal((2, 0), 0.5, (128, 2)), jnp.float32)
    unknown = jnp.asarray(rng.normal((-2, -2), 0.5, (128, 2)), jnp.float32)

    def score(state: nov.NoveltyState) -> tuple[float, float]:
        return tuple(float(nov.novelty(state, x).mean()) for x in (known, unknown))

    before = score(state)
    target = jax.device_get(state.target)
    step = jax.jit(lambda state: nov.distil(state, known))
    state, first_loss = step(state)
    for _ in range(300):
        state, loss = step(state)
    after = score(state)
    assert float(loss) < 0.05 * float(first_loss)
    assert after[0] < 0.2 * before[0]
    assert after[1] > 2 * after[0]
    for ours, theirs in zip(jax.tree.leaves(state.target), jax.tree.leaves(target), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_predictor_and_its_target_start_different():
    state = nov.init_novelty(jax.random.key(0), 3, 2, 5)
    assert not np.array_equal(state.predictor[0].weight, state.target[0].weight)
    assert not np.asarray(state.queue.filled).any()
    assert state.queue.observation.shape == (5, 3)
    assert state.queue.achieved.shape == (5, 2)


def test_an_update_of_the_queue_step_by_step():
    """Two blocks of an episode: score, discard for both blocks, then enter both. A stored state keeps its score."""
    config = NoveltyConfig(similarity=0.5)
    state = nov.init_novelty(jax.random.key(0), 1, 1, SLOTS)
    stored = _update(empty_queue(), new_states([(0.0, 1.0), (10.0, 2.0)], 0))
    state = state._replace(queue=stored)
    places = np.zeros((BLOCK, 1), np.float32)
    blocks = [((places + 10.1, places + 10.1), 1), ((places + 10.3, places + 10.3), 1)]
    queue = nov.QueueUpdate(config)(state, CONSTANT, blocks).queue
    kept = np.asarray(queue.achieved[queue.filled, 0])
    # 10.0 is similar to a new state. 10.1 is similar to 10.3 of the same episode, and stays.
    np.testing.assert_allclose(np.sort(kept), [0.0, 10.1, 10.3], rtol=1e-6)
    score = dict(zip(kept.tolist(), np.asarray(queue.score[queue.filled]).tolist(), strict=True))
    fresh = nov.novelty(state, jnp.asarray(kept)[:, None])
    expected = dict(zip(kept.tolist(), fresh.tolist(), strict=True)) | {0.0: 1.0}
    assert score == pytest.approx(expected, rel=1e-5)
