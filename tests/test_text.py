"""Numbers and values as people read them."""

import pytest

from higl.text import counted, did_you_mean, duration, number_text, progress_text, steps_text, tick_text, value_text


@pytest.mark.parametrize(("steps", "text"), [(0, "0"), (950, "950"), (60_000, "60k"), (1_250_000, "1.25M")])
def test_steps(steps, text):
    assert steps_text(steps) == text


@pytest.mark.parametrize(("done", "text"), [(840, "840 of 2.1k"), (2_100, "2.1k"), (2_160, "2.16k")])
def test_progress_is_never_more_than_planned(done, text):
    """A run ends with an episode: "2.16k of 2.1k" reads like a mistake."""
    assert progress_text(done, 2_100) == text


@pytest.mark.parametrize(("seconds", "text"), [(42, "42s"), (200, "3m 20s"), (7500, "2h 05m")])
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(("number", "text"), [(4.0, "4"), (0.02, "0.02"), (1e-5, "1e-05"), (0.1234567, "0.1234567")])
def test_numbers_are_short_and_exact(number, text):
    assert number_text(number) == text


def test_plurals():
    assert (counted(1, "core"), counted(2, "core")) == ("1 core", "2 cores")


@pytest.mark.parametrize(
    ("value", "text"), [((300, 300), "[300, 300]"), ([0.5, 1.0], "[0.5, 1]"), (True, "True"), ("best", "best")]
)
def test_values_of_settings(value, text):
    assert value_text(value) == text


@pytest.mark.parametrize(("number", "text"), [(0.25, "0.25"), (1200.0, "1200"), (0.0, "0"), (1.5e-4, "1.5e-4")])
def test_ticks(number, text):
    assert tick_text(number) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("reecher", "; did you mean reacher?"),
        ("coverage", "; did you mean landmarks.coverage?"),
        ("xyz", ""),
        ("pushy-v1", ""),
    ],
)
def test_suggestions(name, text):
    assert did_you_mean(name, ["reacher", "pusher", "landmarks.coverage"]) == text


def test_suggested_flags():
    assert did_you_mean("stepps", ["steps"], "--") == "; did you mean --steps?"


def test_all_settings_that_end_in_a_name_are_suggested():
    known = ["low.actor_learning_rate", "high.actor_learning_rate", "novelty.learning_rate", "low.discount"]
    both = "low.actor_learning_rate or high.actor_learning_rate"
    assert did_you_mean("learning_rate", known) == f"; did you mean {both} or novelty.learning_rate?"
    assert did_you_mean("low.learning_rate", known) == "; did you mean low.actor_learning_rate?"
    assert did_you_mean("actor-learning-rate", known) == f"; did you mean {both}?"
