"""Observers: every event reaches everyone, in order; the callback can stop a run."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from higl.run.observers import CallbackObserver, Observer, Observers

EVENTS = {
    "begin": ("name", 0, 100),
    "episode": ({"step": 1},),
    "evaluation": ({"step": 1},),
    "pause": (),
    "saved": (1,),
    "note": ("text",),
    "warn": ("text",),
    "interrupted": ("text",),
    "end": (),
}


class Recorder(Observer):
    """Records every event as (own name, event, arguments)."""

    def __init__(self, name: str, record: list):
        for event in EVENTS:
            setattr(self, event, lambda *arguments, event=event: record.append((name, event, arguments)))


def test_the_events_are_these():
    methods = {name for name, _ in inspect.getmembers(Observer, inspect.isfunction)}
    assert methods == {*EVENTS, "wants_to_stop"}


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_reaches_all_observers_in_order(event):
    record: list = []
    getattr(Observers([Recorder("first", record), Recorder("second", record)]), event)(*EVENTS[event])
    assert record == [("first", event, EVENTS[event]), ("second", event, EVENTS[event])]


def test_the_callback_gets_episodes_and_evaluations():
    rows: list = []
    observer = CallbackObserver(rows.append)
    observer.episode({"step": 20, "episode": 3, "low/loss": 0.5})
    observer.evaluation({"step": 20, "success": 0.5})
    assert rows == [
        {"step": 20, "episode": 3, "low/loss": 0.5},
        {"step": 20, "episode": 3, "evaluation/step": 20, "evaluation/success": 0.5},
    ]
    assert not observer.wants_to_stop()


@pytest.mark.parametrize(("answer", "stops"), [(None, False), (True, False), (False, True), (np.False_, True)])
def test_an_answer_of_false_stops(answer, stops):
    group = Observers([Observer(), CallbackObserver(lambda row: answer)])
    group.episode({"step": 20, "episode": 1})
    assert group.wants_to_stop() == stops
