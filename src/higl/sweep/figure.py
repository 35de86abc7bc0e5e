"""The figure of a sweep, from whatever its runs have reached: reading and drawing are those of `higl.figures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from higl.figures.curves import Panel, draw_curves, evaluation_panels, save
from higl.figures.maps import draw_landmarks
from higl.figures.runs import NoRunsError, Run, read_run, task_title
from higl.runlog import is_run
from higl.sweep.catalogue import Entry
from higl.sweep.plan import PlannedRun


def draw(entry: Entry, plan: Sequence[PlannedRun], out: Path, *, iqm: bool = False) -> str:
    """Draw an entry's figure into a file; return a line that says what is in it.

    Landmark maps are those of one run: the first that has any.

    Raises:
        NoRunsError: none of its runs has begun.
        NoSnapshotsError: there are landmark maps to draw, and no run has any yet.
    """
    begun = [run for run in plan if is_run(run.folder)]
    if not begun:
        raise NoRunsError(f"no run of {entry.name} has begun: `higl sweep run {entry.name}` begins them")
    runs = [replace(read_run(run.folder), label=run.variant) for run in begun]
    if entry.draw == "landmarks":
        run = next((run for run in runs if run.snapshots), runs[0])
        save(draw_landmarks(run, title=f"{entry.title}\n{run.title}"), out)
        return f"{out}: {run.name}{'' if run.status == 'finished' else ', not finished'}"
    save(draw_curves(_panels(plan, runs, iqm), entry.title), out)
    unfinished = sum(run.status != "finished" for run in runs)
    more = f", {unfinished} of them not finished" if unfinished else ""
    return f"{out}: {len(runs)} of {len(plan)} runs{more}"


def _panels(plan: Sequence[PlannedRun], runs: Sequence[Run], iqm: bool) -> list[Panel]:
    """Return the panels in the entry's order."""
    order = list(dict.fromkeys(task_title(run.config.task, run.config.reward) for run in plan))
    panels = evaluation_panels(runs, iqm=iqm)
    return sorted(panels, key=lambda panel: order.index(panel.title) if panel.title in order else len(order))
