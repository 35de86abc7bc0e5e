"""The page `docs/results.md`: tables of everything in `results/` and published numbers. Generated, never edited."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from higl.figures.groups import ALGORITHM_ORDER
from higl.run.naming import algorithm_title, task_title
from higl.run.reading import Run
from higl.sweep.aggregate import (
    FINAL_WINDOW,
    SeedCurve,
    Statistic,
    aggregate,
    area,
    final_success,
    probability_of_improvement,
    steps_to,
    stratified_iqm,
)
from higl.sweep.catalogue import Entry, Variant, read_catalogue
from higl.sweep.claims import Finding, curve_of, findings
from higl.sweep.published import published
from higl.sweep.results import Result, read_results
from higl.sweep.results_figure import Folders, documented, read_folders, runs_of
from higl.text import counted, duration, progress_text, steps_text

COMMAND = "higl results table"
TEMPLATE = Path(__file__).with_name("results.md.jinja")

Row = list[str]

# Seeds of each algorithm from which the probability of an improvement is worth printing.
_FEWEST = 3


@dataclass(frozen=True)
class SeedGroup:
    """The seeds of one algorithm and variant on one task."""

    results: tuple[Result, ...]

    @property
    def first(self) -> Result:
        """The first seed, for what all seeds share."""
        return self.results[0]

    @property
    def title(self) -> str:
        """Task and reward for people."""
        return task_title(self.first.config.task, self.first.config.reward, self.first.test_env)

    @property
    def label(self) -> str:
        """Algorithm and variant for people."""
        name = algorithm_title(self.first.config.algo)
        name = f"{name} `{self.first.variant}`" if self.first.variant else name
        return name + (f" (zero-shot{self._visited})" if self.first.config.explores_freely else "")

    @property
    def _visited(self) -> str:
        """How much of the maze the seeds have visited, on average; empty if that is unknown."""
        shares = [result.facts.get("explored_share") for result in self.results]
        known = [share for share in shares if share is not None]
        return f", {np.mean(known):.0%} of the maze visited" if known else ""

    @property
    def steps(self) -> int:
        """Steps over which the seeds are compared: those of the shortest run."""
        return min(result.curve.last for result in self.results)

    def curves(self, until: int) -> list[SeedCurve]:
        """Return the curve of each seed up to a step."""
        return [result.curve.until(until) for result in self.results]

    def parts(self) -> list[SeedGroup]:
        """Return this group, then the seeds that are longer than the shortest, and so on until all seeds end."""
        longer = tuple(result for result in self.results if result.curve.last > self.steps)
        return [self, *(replace(self, results=longer).parts() if longer else [])]


def make_page(results: Path) -> str:
    """Return the page as Markdown. It depends on the results alone."""
    found = [result for result in read_results(results) if result.curve.last]
    groups, folders = _group(found), read_folders(results)
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        command=COMMAND,
        window=steps_text(FINAL_WINDOW),
        figures={name: _caption(entries) for name, entries in documented(folders).items()},
        tasks=_task_tables(groups),
        variants=[table for entry in read_catalogue().values() for table in _variant_tables(entry, folders)],
        findings=[_finding_row(finding) for finding in findings(read_catalogue(), folders)],
        comparison=_comparison(groups),
        runs=[_run_row(result) for result in found],
    )


def _group(results: Sequence[Result]) -> list[SeedGroup]:
    groups: dict[Path, list[Result]] = {}
    for result in results:
        groups.setdefault(result.path.parent, []).append(result)
    made = [SeedGroup(tuple(members)) for members in groups.values()]
    return sorted(made, key=lambda g: (g.first.task, ALGORITHM_ORDER.index(g.first.config.algo), g.first.variant))


# --- Figures and what they show -------------------------------------------------------------------------------------


def _caption(entries: Sequence[Entry]) -> str:
    return "; ".join(entry.title for entry in entries)


def _finding_row(finding: Finding) -> Row:
    scores = {name: values for name, values in finding.scores.items() if values}
    areas = ", ".join(f"{name}: {np.mean(values):.0%} ({len(values)})" for name, values in scores.items())
    entry = finding.entry
    return [f"`{entry.name}`", finding.task, entry.claim, areas, steps_text(finding.steps), finding.verdict]


def _variant_tables(entry: Entry, folders: Folders) -> list[dict[str, Any]]:
    """Return a table for each task of an entry that compares more than two variants and states no claim.

    It shows the seeds one by one, each variant beside the first over the steps that both have.
    """
    tables = []
    for task in entry.tasks if len(entry.variants) > 2 and not entry.claim else ():
        found = {variant.name: _seeds(variant, runs_of(folders, entry, task, variant)) for variant in entry.variants}
        base = found.pop(entry.variants[0].name)
        others = {name: curves for name, curves in found.items() if curves}
        if base and others:
            rows = [_variant_row(entry.variants[0].name, base, {})]
            rows += [_variant_row(name, curves, base) for name, curves in others.items()]
            tables.append({"title": entry.title, "base": entry.variants[0].name, "rows": rows})
    return tables


def _seeds(variant: Variant, runs: Sequence[Run]) -> dict[int, SeedCurve]:
    """Return the curves of the seeds that a variant asks for."""
    return {run.seed: curve_of(run) for run in runs if run.seed in variant.seeds}


def _variant_row(name: str, seeds: Mapping[int, SeedCurve], base: Mapping[int, SeedCurve]) -> Row:
    """Return the row of a variant: its seeds, and the areas of all seeds of `base` over the same steps."""
    steps = min(curve.last for curve in (*seeds.values(), *base.values()))
    curves = [curve.until(steps) for curve in seeds.values()]
    reached = [steps_to(curve, 0.9) for curve in curves]
    return [
        name,
        ", ".join(map(str, seeds)),
        steps_text(steps),
        ", ".join(f"{area(curve):.0%}" for curve in curves),
        ", ".join(f"{area(curve.until(steps)):.0%}" for curve in base.values()),
        ", ".join("∞" if step is None else steps_text(step) for step in reached),
        ", ".join(f"{final_success(curve):.0%}" for curve in curves),
    ]


# --- Tasks ----------------------------------------------------------------------------------------------------------


def _task_tables(groups: Sequence[SeedGroup]) -> list[dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {}
    for group in groups:
        table = tables.setdefault(group.first.task, {"title": group.title, "rows": []})
        table["rows"] += [_group_row(part) for part in group.parts()]
    return list(tables.values())


def _group_row(group: SeedGroup) -> Row:
    curves = group.curves(group.steps)
    final = aggregate([final_success(curve) for curve in curves])
    deviation = "" if math.isnan(final.deviation) else f" ± {100 * final.deviation:.1f}"
    return [
        group.label,
        ", ".join(str(result.config.seed) for result in group.results),
        steps_text(group.steps),
        f"{100 * final.mean:.1f}{deviation}%",
        _percent(np.mean([final_success(result.curve_at_end.until(group.steps)) for result in group.results])),
        _with_interval(final.iqm),
        f"{np.mean([area(curve) for curve in curves]):.0%}",
        _median_steps_to(curves, 0.5),
        _median_steps_to(curves, 0.9),
        _reported(group.first),
    ]


def _median_steps_to(curves: Sequence[SeedCurve], level: float) -> str:
    """Return the median step at which seeds reached a level. Seeds that did not reach it count as infinitely late."""
    steps = [steps_to(curve, level) for curve in curves]
    count = sum(step is not None for step in steps)
    median = float(np.median([math.inf if step is None else step for step in steps])) if count else math.inf
    text = steps_text(median) if math.isfinite(median) else "∞"
    return text if count == len(curves) else f"{text} ({count} of {len(curves)})"


def _reported(result: Result) -> str:
    """Return the published numbers for the task, algorithm and variant of a result; `paper` counts as no variant.

    There are none for another test environment.
    """
    if result.test_env is not None:
        return ""
    config = result.config
    variant = "" if result.variant == config.preset == "paper" else result.variant
    values = published(config.task, config.reward, config.algo, variant)
    return "; ".join(f"{v.text} ({v.source})" for v in values)


# --- HIGL over HRAC -------------------------------------------------------------------------------------------------


def _comparison(groups: Sequence[SeedGroup]) -> dict[str, Any]:
    """Return how HIGL compares with HRAC on the tasks that have both with the preset `best`."""
    by_algorithm = {(group.first.task, group.first.config.algo): group for group in groups if not group.first.variant}
    rows: list[Row] = []
    pairs: list[tuple[list[float], list[float]]] = []
    for task in dict.fromkeys(group.first.task for group in groups):
        higl, hrac = by_algorithm.get((task, "higl")), by_algorithm.get((task, "hrac"))
        if higl is None or hrac is None:
            continue
        until = min(higl.steps, hrac.steps)
        first, second = ([final_success(curve) for curve in group.curves(until)] for group in (higl, hrac))
        means = [f"{100 * np.mean(scores):.1f}%" for scores in (first, second)]
        counts = f"{len(first)} and {len(second)}"
        improvement = "-"
        if min(len(first), len(second)) >= _FEWEST:
            pairs.append((first, second))
            improvement = _with_interval(probability_of_improvement([(first, second)]))
        rows.append([higl.title, steps_text(until), counts, *means, improvement])
    if len(pairs) < 2:
        return {"rows": rows, "tasks": 0, "fewest": _FEWEST}
    return {
        "rows": rows,
        "tasks": len(pairs),
        "fewest": _FEWEST,
        "improvement": _with_interval(probability_of_improvement(pairs)),
        "higl": _with_interval(stratified_iqm([first for first, _ in pairs])),
        "hrac": _with_interval(stratified_iqm([second for _, second in pairs])),
    }


def _with_interval(statistic: Statistic) -> str:
    interval = "" if math.isnan(statistic.low) else f" ({statistic.low:.0%} to {statistic.high:.0%})"
    return f"{statistic.value:.0%}{interval}"


# --- Runs -----------------------------------------------------------------------------------------------------------


def _run_row(result: Result) -> Row:
    facts, curve = result.facts, result.curve
    commits = dict.fromkeys(start.get("commit") for start in facts["starts"])
    return [
        f"`{'/'.join(result.path.parts[-3:])}`",
        facts["status"],
        progress_text(facts["step"], facts["steps"]),
        f"{100 * final_success(curve):.1f}%",
        _percent(final_success(result.curve_at_end)),
        f"{curve.success[-1]:.0%}",
        _test_text(result),
        duration(facts["seconds"]) if facts["seconds"] else "?",
        f"{facts['processor'] or '?'}, {counted(facts['cores'] or '?', 'core')}".replace("|", "\\|"),
        ", ".join(_short(commit) for commit in commits),
    ]


def _test_text(result: Result) -> str:
    """Return how often the final policy succeeded in test episodes, if it was tested."""
    if result.test is None:
        return ""
    low, high = result.test["success_interval"]
    at_end = result.test.get("successes_at_end", "-")
    return f"{result.test['successes']} of {result.test['episodes']} ({low:.0%} to {high:.0%}); at the end {at_end}"


def _percent(share: float) -> str:
    """Return a share in percent, - if it is not known."""
    return "-" if math.isnan(share) else f"{100 * share:.1f}%"


def _short(commit: str | None) -> str:
    return f"`{commit[:10]}{'+' if commit.endswith('+') else ''}`" if commit else "?"
