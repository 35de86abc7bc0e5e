"""The report: one self-contained page about one or more runs. It loads nothing from the network.

This module collects what the page shows; the templates in `page/` write the HTML and escape every text.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from higl import __version__
from higl.figures import svg
from higl.figures.goal_space import goal_size, load_snapshots, path_points, points_of, projections, success_of
from higl.figures.groups import repeated_seeds
from higl.figures.panels import (
    EXPLORED,
    LOSSES,
    PROGRESS,
    Panel,
    StageTimes,
    evaluation_panels,
    metric_panels,
    stage_times,
)
from higl.figures.statistics import SMOOTHED_EVALUATIONS, rolling_mean
from higl.figures.style import dashes, stage_colour
from higl.run.files import replace_file
from higl.run.naming import algorithm_title, changed_settings
from higl.run.reading import Columns, Run, notices_of
from higl.settings.flat import flat_config
from higl.settings.layers import complete_config
from higl.settings.presets import preset
from higl.text import duration, progress_text, steps_text, value_text

MAX_MOMENTS = 40
"""Largest number of snapshots in a run's slider."""
MAX_VIDEO_BYTES = 24_000_000
_SELECTED = {
    "high/selected_coverage": "share of selections: coverage landmarks",
    "high/selected_novelty": "share of selections: novelty landmarks",
    "high/selected_goal": "share of selections: the goal itself",
}
_LANDMARKS = ("coverage", "novelty")
_KINDS = (*_LANDMARKS, "selected", "pseudo_landmark", "subgoal", "subgoals")
_FACTS = {
    "started": "started", "system": "system", "processor": "processor", "cores": "cores", "device": "device",
    "python": "Python", "commit": "commit",
}  # fmt: skip


@dataclass(frozen=True)
class Chart:
    """A chart of the page; the page's script finds it by its key."""

    key: str
    title: str
    panel: Panel
    wide: bool = False

    @property
    def drawing(self) -> Markup:
        """The chart as SVG."""
        return svg.chart(self.panel, self.key, wide=self.wide)


@dataclass(frozen=True)
class Maps:
    """Maps of the goal space: a title for each moment, and a title and an SVG (of all moments) for each map.

    `kinds` names what is drawn at some moment; the legend explains only that.
    """

    moments: list[str]
    drawings: list[tuple[str, Markup]]
    kinds: frozenset[str]
    free: bool

    @property
    def with_landmarks(self) -> bool:
        """Whether there are landmarks."""
        return not self.kinds.isdisjoint(_LANDMARKS)


@dataclass(frozen=True)
class Video:
    """A video inside the page, and a digest by which the script recognises an unchanged one."""

    digest: str
    base64: str


@dataclass(frozen=True)
class SettingRow:
    """A setting, its value, and the preset's value if that is a different one and the setting is not derived."""

    name: str
    value: str
    preset: str | None


@dataclass(frozen=True)
class RunSection:
    """What the page shows about one run; `key` is its anchor."""

    key: str
    run: Run
    last_success: str
    last_success_at_end: str
    best_success: str
    facts: dict[str, str]
    maps: Maps | None
    video: Video | None
    training: list[Chart]
    times: StageTimes | None
    settings: list[SettingRow]
    versions: list[tuple[str, str]]

    @property
    def task(self) -> str:
        """Title of the task."""
        return self.run.task_title

    @property
    def algorithm(self) -> str:
        """Name of the algorithm."""
        return algorithm_title(self.run.algo)


def build_report(
    runs: Sequence[Run], *, watch_seconds: float | None = None, version: str = "", now: float | None = None
) -> str:
    """Return the page.

    Args:
        runs: runs to show.
        watch_seconds: how often a page served by `higl watch` asks for changes; None for a page that never asks.
        version: fingerprint of the runs' files, which such a page compares.
        now: time that the page shows as its own, in seconds since 1970; the current time if None.
    """
    success = _success_charts(runs)
    sections = [_run_section(run, f"run-{number}") for number, run in enumerate(runs, 1)]
    charts = [*success, *(chart for section in sections for chart in section.training)]
    data = {
        "charts": {chart.key: svg.chart_data(chart.panel) for chart in charts},
        "maps": {f"{section.key}-maps": section.maps.moments for section in sections if section.maps},
    }
    return (
        _templates()
        .get_template("report.html")
        .render(
            title=_title(runs),
            made=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now)),
            notices=[*notices_of(runs), *repeated_seeds(runs)],
            success=success,
            sections=sections,
            data=data,
            watch_seconds=None if watch_seconds is None else f"{watch_seconds:g}",
            version=version,
            higl_version=__version__,
            css=_page_file("report.css"),
            script=_page_file("report.js"),
        )
    )


def write_report(runs: Sequence[Run], path: Path) -> None:
    """Write the page into a file, which appears complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, build_report(runs).encode())


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("higl.figures", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    templates.filters.update(steps=steps_text, duration=duration)
    known: Any = templates.globals  # its declared type allows Jinja's own names only
    known.update(
        dashes=dashes,
        mark_path=svg.mark,
        stage_colour=stage_colour,
        star=svg.star,
        times_bar=svg.times_bar,
        two_colours=svg.two_colours,
    )
    return templates


def _page_file(name: str) -> Markup:
    """Return our style or script, which goes into the page unescaped."""
    return Markup(resources.files("higl.figures").joinpath("page", name).read_text(encoding="utf-8"))


# --- Top ------------------------------------------------------------------------------------------------------------


def _title(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return runs[0].title
    tasks = list(dict.fromkeys(run.task_title for run in runs))
    return f"{'; '.join(tasks[:3])}{' and more' if len(tasks) > 3 else ''}: {len(runs)} runs"


def _success_charts(runs: Sequence[Run]) -> list[Chart]:
    panels = evaluation_panels(runs)
    titles = ["Success rate of the evaluations"] if len(runs) == 1 else [panel.title for panel in panels]
    return [
        Chart(f"success-{number}", title, panel, wide=len(panels) == 1)
        for number, (title, panel) in enumerate(zip(titles, panels, strict=True), 1)
    ]


# --- One run --------------------------------------------------------------------------------------------------------


def _run_section(run: Run, key: str) -> RunSection:
    panels = metric_panels([run], EXPLORED | PROGRESS | LOSSES | _SELECTED)
    times = stage_times(run)
    last, best = _success_rates(run, "success")
    at_end, _ = _success_rates(run, "success_at_end", unknown="-")
    return RunSection(
        key=key,
        run=run,
        last_success=last,
        last_success_at_end=at_end,
        best_success=best,
        facts=_key_facts(run, times, last, at_end, best),
        maps=_maps(run),
        video=_video(run),
        training=[Chart(f"{key}-chart-{number}", panel.quantity, panel) for number, panel in enumerate(panels, 1)],
        times=times,
        settings=_settings(run),
        versions=_versions(run),
    )


def _key_facts(run: Run, times: StageTimes | None, last: str, at_end: str, best: str) -> dict[str, str]:
    planned = run.settings.get("steps")
    facts = {
        "steps": progress_text(run.last_step, planned if isinstance(planned, int) else 0),
        "success (last 5 evaluations)": last,
        "at the last step (last 5)": at_end,
        "success (best 5)": best,
    }
    if run.before:
        facts["began"] = run.before
    if run.settings.get("goal") == "none":
        facts["goal"] = "none in training: success is zero-shot"
    explored = run.metrics.get("explored_share", np.zeros(0))
    if len(explored) and np.isfinite(explored[-1]):
        facts["maze visited"] = f"{explored[-1]:.0%}"
    clock = run.metrics.get("time", np.zeros(0))
    if len(clock) and np.isfinite(clock[-1]):
        facts["training time"] = duration(float(clock[-1]))
    if times is not None:
        facts["time per step"] = f"{times.total:.1f} ms"
    return facts


def _success_rates(run: Run, column: str, unknown: str = "none yet") -> tuple[str, str]:
    """Return the mean success of the last five evaluations, and the best mean of five in a row."""
    values = run.evaluations.get(column, np.zeros(0))
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return unknown, unknown
    means = rolling_mean(values, SMOOTHED_EVALUATIONS)
    return f"{means[-1]:.0%}", f"{means.max():.0%}"


def _maps(run: Run) -> Maps | None:
    chosen = run.snapshots
    if len(chosen) > MAX_MOMENTS:
        chosen = [chosen[place] for place in np.linspace(0, len(chosen) - 1, MAX_MOMENTS).round().astype(int)]
    snapshots = load_snapshots(chosen)
    if not snapshots:
        return None
    kinds = _kinds_drawn(snapshots)
    titles: dict[svg.MapKind, str] = {
        "landmarks": "Landmarks" if kinds.intersection(_LANDMARKS) else "Visited states",
        "paths": "Evaluation episodes",
    }
    shown = projections(run.task, goal_size(snapshots[-1]))
    drawings = []
    for projection in shown:
        for kind, title in titles.items():
            title = title if len(shown) == 1 else f"{title}: {projection.title}"
            drawings.append((title, svg.map_svg(snapshots, projection, kind, f"{title}, {run.title}")))
    return Maps(
        [_moment_title(snapshot) for snapshot in snapshots], drawings, kinds, run.settings.get("goal") == "none"
    )


def _kinds_drawn(snapshots: Sequence[Columns]) -> frozenset[str]:
    """Return the kinds of points that some snapshot has, and "path" if one has a shortest path."""
    kinds = {kind for kind in _KINDS if any(len(points_of(snapshot, kind)) for snapshot in snapshots)}
    return frozenset(kinds | ({"path"} if any(len(path_points(snapshot)) for snapshot in snapshots) else set()))


def _moment_title(snapshot: Columns) -> str:
    success = success_of(snapshot)
    words = [f"{steps_text(float(snapshot['step']))} steps"]
    if success is not None:
        episodes = len(snapshot["eval_success"])
        words.append(f"{round(success * episodes)} of {episodes} episodes reached the goal")
    if len(snapshot.get("coverage", ())) and not int(snapshot.get("planning", 1)):
        words.append("planning has not started")
    return ", ".join(words)


def _video(run: Run) -> Video | None:
    """Return the run's video; None if there is none, or if it is too large for the page."""
    if run.video is None or run.video.stat().st_size > MAX_VIDEO_BYTES:
        return None
    content = run.video.read_bytes()
    return Video(hashlib.sha256(content).hexdigest()[:16], base64.b64encode(content).decode())


# --- Settings and versions ------------------------------------------------------------------------------------------


def _settings(run: Run) -> list[SettingRow]:
    """Return all settings, general ones first; none if they are not known."""
    if not run.settings:
        return []
    config = complete_config(run.settings)
    usual = flat_config(preset(config.task, config.algo, config.preset, config.goal))
    changed = changed_settings(config, leave_out=("seed", "steps"))
    return [
        SettingRow(name, value_text(value), value_text(usual[name]) if name in changed else None)
        for name, value in sorted(run.settings.items(), key=lambda item: ("." in item[0], item[0]))
    ]


def _versions(run: Run) -> list[tuple[str, str]]:
    """Return when, where and how the run was started last, by name."""
    starts = run.facts.get("starts")
    if not isinstance(starts, list) or not starts or not isinstance(starts[-1], dict):
        return []
    last = starts[-1]
    facts = {words: last.get(name) for name, words in _FACTS.items()}
    command, packages = last.get("command"), last.get("packages")
    if isinstance(command, list) and command:
        facts["command"] = " ".join([Path(str(command[0])).name, *map(str, command[1:])])
    facts |= packages if isinstance(packages, dict) else {}
    facts["starts"] = len(starts)
    return [(str(name), value_text(value)) for name, value in facts.items() if value is not None]
