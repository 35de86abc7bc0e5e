"""The report: one self-contained page about one or more runs. It asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from higl import __version__
from higl.figures import svg
from higl.figures.curves import LOSSES, OTHER, PROGRESS, Panel, evaluation_panels, metric_panels, stage_times
from higl.figures.maps import goal_size, load_snapshots, projections, success_of
from higl.figures.style import OTHER_STAGE, STAGE_COLOURS, dashes
from higl.run.naming import algorithm_title, task_title
from higl.run.reading import Columns, Run, notices_of
from higl.settings.layers import flat
from higl.text import duration, steps_text

MOST_MOMENTS = 40
"""Snapshots in the slider of a run, at most."""
MOST_VIDEO_BYTES = 24_000_000
_SELECTED = {
    "high/selected_coverage": "selected landmarks: by coverage",
    "high/selected_novelty": "selected landmarks: by novelty",
    "high/selected_goal": "selected: the goal itself",
}
_FACTS = {
    "started": "started", "system": "system", "processor": "processor", "cores": "cores", "device": "device",
    "python": "Python", "commit": "commit",
}  # fmt: skip


class Page:
    """The parts of a page as it is written: its charts and maps get names that its script knows."""

    def __init__(self) -> None:
        self.charts: dict[str, list[dict[str, Any]]] = {}
        self.maps: dict[str, list[str]] = {}

    def chart(self, panel: Panel, title: str, *, wide: bool, legend: bool) -> str:
        """Return a chart with its title, legend and read-out."""
        key = f"chart-{len(self.charts) + 1}"
        self.charts[key] = svg.chart_data(panel)
        entries = _legend(panel) if legend else ""
        return (
            f"<figure><figcaption>{escape(title)}</figcaption>{svg.chart(panel, key, wide=wide)}{entries}"
            f'<output for="{key}" aria-live="polite"></output></figure>'
        )


def build_report(
    runs: Sequence[Run], *, watch_seconds: float | None = None, version: str = "", now: float | None = None
) -> str:
    """Return the page.

    Args:
        runs: what it is about.
        watch_seconds: how often a page that `higl watch` serves asks for news; None: a page that never asks.
        version: of what the page shows, for the same.
        now: seconds since 1970 that the page says it was made at.
    """
    page = Page()
    body = "".join(
        [
            _header(runs, now, live=watch_seconds is not None),
            '<main id="main">',
            _overview(runs) if len(runs) > 1 else _key_facts(runs[0], with_state=True),
            _success(page, runs),
            *(_run_section(page, run, number, many=len(runs) > 1) for number, run in enumerate(runs, 1)),
            f'<script type="application/json" id="data">{_json({"charts": page.charts, "maps": page.maps})}</script>',
            "</main>",
            f"<footer>Made by higl {escape(__version__)}. The page needs no network and can be kept or sent as one "
            "file.</footer>",
        ]
    )
    return _document(_title(runs), body, watch_seconds, version)


def write_report(runs: Sequence[Run], path: Path) -> None:
    """Write the page into a file, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".new-{path.name}")
    beside.write_text(build_report(runs), encoding="utf-8")
    beside.replace(path)


def _document(title: str, body: str, watch_seconds: float | None, version: str) -> str:
    files = resources.files("higl.figures").joinpath("page")
    css, script = (files.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    connect = "connect-src 'self'; " if watch_seconds is not None else ""
    policy = (
        f"default-src 'none'; {connect}style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
        "media-src data:; base-uri 'none'; form-action 'none'"
    )
    live = f' data-watch="{watch_seconds:g}" data-version="{escape(version)}"' if watch_seconds is not None else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>\n{css}</style>\n</head>\n'
        f'<body{live}>\n<a class="skip" href="#main">Skip to the curves</a>\n{body}\n'
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


# --- Top ------------------------------------------------------------------------------------------------------------


def _title(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return runs[0].title
    tasks = list(dict.fromkeys(task_title(run.task, run.reward) for run in runs))
    return f"{', '.join(tasks[:3])}{' and more' if len(tasks) > 3 else ''}: {len(runs)} runs"


def _header(runs: Sequence[Run], now: float | None, *, live: bool) -> str:
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    state = f'<span id="live" class="badge running">live</span> as of {made}' if live else f"as of {made}"
    listed = "".join(f"<li>{escape(notice)}</li>" for notice in notices_of(runs))
    return (
        f'<header><h1>{escape(_title(runs))}</h1><p class="soft">{state}</p>'
        + (f'<ul class="notices" aria-label="Notices">{listed}</ul>' if listed else "")
        + "</header>"
    )


def _overview(runs: Sequence[Run]) -> str:
    rows = []
    for number, run in enumerate(runs, 1):
        last, best = _latest(run), _best(run)
        cells = [
            f'<td><a href="#run-{number}">{escape(run.name)}</a></td>',
            f"<td>{escape(task_title(run.task, run.reward))}</td><td>{escape(algorithm_title(run.algo))}</td>",
            f'<td class="number">{run.seed if run.seed is not None else ""}</td><td>{_badge(run)}</td>',
            f'<td class="number">{steps_text(run.last_step)}</td><td class="number">{last}</td>',
            f'<td class="number">{best}</td>',
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    heads = ("run", "task", "algorithm", "#seed", "state", "#steps", "#success, last 5", "#best 5")
    return f"<h2>Runs</h2>{_table(heads, rows)}"


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    """Return a table of ready rows; heads that begin with # stand over numbers."""
    head = "".join(
        f'<th scope="col"{" class=number" if name.startswith("#") else ""}>{name.removeprefix("#")}</th>'
        for name in heads
    )
    head = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f'<div class="scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _badge(run: Run) -> str:
    return f'<span class="badge {escape(run.status)}">{escape(run.status)}</span>'


def _success_of(run: Run) -> np.ndarray:
    values = run.evaluations.get("success", np.zeros(0))
    return values[np.isfinite(values)]


def _latest(run: Run) -> str:
    values = _success_of(run)[-5:]
    return f"{values.mean():.0%}" if len(values) else "none yet"


def _best(run: Run) -> str:
    """Return the best mean of five evaluations in a row."""
    values = _success_of(run)
    if len(values) == 0:
        return "none yet"
    size = min(5, len(values))
    return f"{np.convolve(values, np.ones(size) / size, 'valid').max():.0%}"


def _success(page: Page, runs: Sequence[Run]) -> str:
    panels = evaluation_panels(runs)
    charts = "".join(
        page.chart(panel, _chart_title(panel, runs), wide=len(panels) == 1, legend=True) for panel in panels
    )
    shape = "charts one" if len(panels) == 1 else "charts"
    note = panels[0].note if panels else ""
    return f'<h2>Success</h2><div class="{shape}">{charts}</div><p class="note">{escape(note)}</p>'


def _chart_title(panel: Panel, runs: Sequence[Run]) -> str:
    return "Success rate of the evaluations" if len(runs) == 1 else panel.title


def _legend(panel: Panel) -> str:
    entries = []
    for curve in panel.curves:
        dash = " ".join(str(part) for part in dashes(curve.variant))
        line = (
            f'<svg viewBox="0 0 30 14" aria-hidden="true"><line class="swatch" style="{svg.two_colours(curve.colour)}" '
            f'x1="0" x2="30" y1="7" y2="7" stroke-width="3" stroke-dasharray="{dash}"/></svg>'
        )
        entries.append(f"<li>{line}{escape(curve.label)}</li>")
    return f'<ul class="legend">{"".join(entries)}</ul>'


# --- One run --------------------------------------------------------------------------------------------------------


def _run_section(page: Page, run: Run, number: int, *, many: bool) -> str:
    key = f"run-{number}"
    level = "h3" if many else "h2"
    parts = [
        _key_facts(run, with_state=False) if many else "",
        _maps(page, run, key, level),
        _video(run, level),
        _training(page, run, level),
        _times(run, level),
        _settings(run, key),
        _versions(run, key),
    ]
    if not many:
        return f'<section id="{key}" aria-label="{escape(run.name, quote=True)}">{"".join(parts)}</section>'
    heading = f"<h2>{escape(run.name)}</h2> {escape(run.title)} {_badge(run)}"
    is_open = " open" if number == 1 else ""
    return f'<details class="run" id="{key}"{is_open}><summary>{heading}</summary>{"".join(parts)}</details>'


def _key_facts(run: Run, *, with_state: bool) -> str:
    planned = run.settings.get("steps")
    share = f" of {steps_text(planned)}" if isinstance(planned, int) else ""
    facts = {"state": _badge(run)} if with_state else {}
    facts |= {"steps": f"{steps_text(run.last_step)}{share}", "success, last 5": _latest(run), "best 5": _best(run)}
    clock = run.metrics.get("time", np.zeros(0))
    if len(clock) and np.isfinite(clock[-1]):
        facts["time"] = duration(float(clock[-1]))
    times = stage_times(run)
    if times is not None:
        facts["each step"] = f"{sum(times.milliseconds.values()) + times.other:.1f} ms"
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{items}</dl>'


def _maps(page: Page, run: Run, key: str, level: str) -> str:
    chosen = run.snapshots
    if len(chosen) > MOST_MOMENTS:
        chosen = [chosen[place] for place in np.linspace(0, len(chosen) - 1, MOST_MOMENTS).round().astype(int)]
    snapshots = load_snapshots(chosen)
    if not snapshots:
        return f'<{level}>Landmarks</{level}><p class="soft">No snapshot yet: they are taken at evaluations.</p>'
    page.maps[f"{key}-maps"] = [_moment_title(snapshot) for snapshot in snapshots]
    with_landmarks = any(len(snapshot.get("coverage", ())) + len(snapshot.get("novelty", ())) for snapshot in snapshots)
    figures = []
    for projection in projections(run.task, goal_size(snapshots[-1])):
        where = "" if goal_size(snapshots[-1]) == 2 else f": {projection.title}"
        for kind, title in (
            ("landmarks", "Landmarks" if with_landmarks else "Visited states"),
            ("paths", "Evaluation"),
        ):
            label = f"{title}{where}, {run.title}"
            drawing = svg.map_svg(snapshots, projection, kind, label)
            figures.append(f"<figure><figcaption>{title}{escape(where)}</figcaption>{drawing}</figure>")
    return (
        f'<div id="{key}-maps"><{level}>Exploring the goal space</{level}>'
        f"{_map_controls(key, len(snapshots), page.maps[f'{key}-maps'][-1], with_landmarks)}"
        f'<div class="maps">{"".join(figures)}</div>{_map_legend(with_landmarks)}</div>'
    )


def _moment_title(snapshot: Columns) -> str:
    success = success_of(snapshot)
    words = [f"{steps_text(float(snapshot['step']))} steps"]
    if success is not None:
        episodes = len(snapshot["eval_success"])
        words.append(f"{round(success * episodes)} of {episodes} episodes reached the goal")
    if len(snapshot.get("coverage", ())) and not int(snapshot.get("planning", 1)):
        words.append("planning has not started")
    return ", ".join(words)


def _map_controls(key: str, count: int, title: str, with_landmarks: bool) -> str:
    layers = {"visited": "visited states", "landmarks": "landmarks", "graph": "graph and plan"}
    boxes = "".join(
        f'<label><input type="checkbox" data-layer="{layer}" id="{key}-{layer}"{_checked(layer)}>{words}</label>'
        for layer, words in layers.items()
        if with_landmarks or layer == "visited"
    )
    return (
        f'<div class="controls"><output for="{key}-slider" aria-live="polite">{escape(title)}</output>'
        f'<button type="button" class="play" id="{key}-play">Play</button>'
        f'<input type="range" id="{key}-slider" min="0" max="{count - 1}" value="{count - 1}" step="1" '
        f'aria-label="Moment of training">{boxes}</div>'
    )


def _checked(layer: str) -> str:
    return "" if layer == "graph" else " checked"


_MARKS = {
    "visited states": '<path class="visited" d="M6 7h0M13 4h0M18 9h0M24 6h0"/>',
    "landmark by coverage": '<circle class="coverage" cx="15" cy="7" r="5"/>',
    "landmark by novelty": '<path class="novelty" d="M15 1l6 11h-12Z"/>',
    "start": '<rect class="state" x="10" y="2" width="10" height="10"/>',
    "goal": f'<path class="goal" d="{svg._star(15, 7, 7)}"/>',
    "shortest path": '<path class="path" d="M0 7H30"/>',
    "selected landmark": '<circle class="selected" cx="15" cy="7" r="5.5"/>',
    "pseudo-landmark": '<path class="pseudo" d="M15 0l7 7l-7 7l-7 -7Z"/>',
    "subgoal": '<path class="subgoal" d="M10 2l10 10m0 -10l-10 10"/>',
    "reached the goal": '<path class="way reached" d="M0 7H24"/><circle class="end reached" cx="24" cy="7" r="4.5"/>',
    "did not": '<path class="way missed" d="M0 7H22"/><path class="end missed" d="M20 3l8 8m0 -8l-8 8"/>',
    "subgoals of the first episode": '<path class="asked" d="M8 7a3 3 0 1 0 .1 0M19 7a3 3 0 1 0 .1 0"/>',
}
_OF_LANDMARKS = ("landmark", "shortest path", "selected", "pseudo")


def _map_legend(with_landmarks: bool) -> str:
    entries = [
        f'<li><svg viewBox="0 0 30 14" aria-hidden="true">{mark}</svg>{escape(words)}</li>'
        for words, mark in _MARKS.items()
        if with_landmarks or not words.startswith(_OF_LANDMARKS)
    ]
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _video(run: Run, level: str) -> str:
    if run.video is None:
        hint = f"higl render {run.name}"
        return f'<{level}>Video</{level}><p class="soft">None yet: <code>{escape(hint)}</code> makes one.</p>'
    content = run.video.read_bytes()
    if len(content) > MOST_VIDEO_BYTES:
        return f'<{level}>Video</{level}><p class="soft">Too large for this page: {escape(str(run.video))}.</p>'
    digest = hashlib.sha256(content).hexdigest()[:16]
    source = base64.b64encode(content).decode()
    return (
        f'<{level}>Video</{level}><video controls loop muted playsinline preload="auto" data-digest="{digest}" '
        f'aria-label="{escape(f"Episodes of {run.title}", quote=True)}" src="data:video/mp4;base64,{source}"></video>'
    )


def _training(page: Page, run: Run, level: str) -> str:
    panels = metric_panels([run], PROGRESS | LOSSES | _SELECTED)
    if not panels:
        return ""
    charts = "".join(page.chart(panel, panel.quantity, wide=False, legend=False) for panel in panels)
    note = panels[0].note.partition("every curve: ")[2]
    return (
        f'<{level}>Training</{level}><div class="charts">{charts}</div><p class="note">every curve: {escape(note)}</p>'
    )


def _times(run: Run, level: str) -> str:
    times = stage_times(run)
    if times is None:
        return ""
    total = sum(times.milliseconds.values()) + times.other
    rows = []
    for stage, taken in [*times.milliseconds.items(), (OTHER, times.other)]:
        colour = STAGE_COLOURS.get(stage, OTHER_STAGE)
        rows.append(
            f'<tr><td><i class="swatch" style="background:{colour}"></i>{escape(stage)}</td>'
            f'<td class="number">{taken:.2f}</td><td class="number">{taken / total:.0%}</td></tr>'
        )
    return (
        f"<{level}>Where the time goes</{level}>{svg.times_bar(times)}"
        f"{_table(('stage', '#ms a step', '#share'), rows)}"
        f'<p class="note">{steps_text(times.steps)} steps in {duration(times.seconds)}, without the first episode, '
        "which compiles the programs</p>"
    )


# --- Settings and versions ------------------------------------------------------------------------------------------


def _settings(run: Run, key: str) -> str:
    if not run.settings:
        return ""
    usual = _preset_of(run)
    rows = []
    for name, value in sorted(run.settings.items(), key=lambda item: ("." in item[0], item[0])):
        before = usual.get(name, value)
        changed = _text(before) != _text(value) and name not in ("seed", "steps")
        rows.append(
            f"<tr{' class=changed' if changed else ''}><td class=setting>{escape(name)}</td>"
            f"<td class=setting>{escape(_text(value))}</td>"
            f"<td class=setting>{escape(_text(before)) if changed else ''}</td></tr>"
        )
    table = _table(("setting", "value", "preset, where it differs"), rows)
    return f'<details id="{key}-settings"><summary>Configuration</summary>{table}</details>'


def _preset_of(run: Run) -> dict[str, Any]:
    """Return the settings that the run's preset has today; nothing if it has none."""
    from higl.settings.presets import preset

    try:
        return flat(asdict(preset(run.task, run.settings["algo"], run.settings["preset"])))
    except (KeyError, ValueError, TypeError):
        return {}


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _versions(run: Run, key: str) -> str:
    starts = run.facts.get("starts")
    if not isinstance(starts, list) or not starts or not isinstance(starts[-1], dict):
        return ""
    last = starts[-1]
    rows = [(words, last.get(name)) for name, words in _FACTS.items()]
    command = last.get("command")
    if isinstance(command, list) and command:
        rows.append(("command", " ".join([Path(str(command[0])).name, *map(str, command[1:])])))
    packages = last.get("packages")
    rows += list(packages.items()) if isinstance(packages, dict) else []
    rows.append(("starts", len(starts)))
    cells = [
        f"<tr><td>{escape(str(name))}</td><td class=setting>{escape(_text(value))}</td></tr>"
        for name, value in rows
        if value is not None
    ]
    return f'<details id="{key}-versions"><summary>Versions</summary>{_table((), cells)}</details>'
