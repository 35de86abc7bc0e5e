"""Seeds of episodes."""

from higl.run.seeds import EVALUATION, MEASURING, TRAINING, episode_seed


def test_seeds_of_different_streams_and_episodes_differ():
    seeds = {episode_seed(0, stream, place) for stream in (TRAINING, EVALUATION, MEASURING) for place in range(1000)}
    assert len(seeds) == 3000
    assert episode_seed(0, TRAINING, 5) == episode_seed(0, TRAINING, 5) != episode_seed(1, TRAINING, 5)
