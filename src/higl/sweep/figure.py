"""The figure of a catalogue entry, drawn from what its runs have logged so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from higl.errors import NoRunsError
from higl.figures.curves import draw_curves, save
from higl.figures.maps import draw_landmarks
from higl.figures.panels import Panel, evaluation_panels
from higl.run.naming import task_title
from higl.run.reading import Run, read_run
from higl.sweep.catalogue import Entry
from higl.sweep.plan import PlannedRun, read_status


def draw(entry: Entry, plan: Sequence[PlannedRun], out: Path, *, iqm: bool = False) -> str:
    """Draw an entry's figure into a file; return a line that describes it, and one for each run that is left out.

    Landmark maps show one run: the first that has snapshots. A folder whose run has other settings is left out.

    Raises:
        NoRunsError: none of its runs has started.
        NoSnapshotsError: the figure shows landmark maps, and no run has a snapshot yet.
    """
    statuses = {run.name: read_status(run) for run in plan}
    left_out = [f"left out: {name}: {status.reason}" for name, status in statuses.items() if not status.usable]
    started = [run for run in plan if statuses[run.name].usable and statuses[run.name].state != "waiting"]
    if not started:
        why = f" ({left_out[0]})" if left_out else ""
        raise NoRunsError(f"no run of {entry.name} has started{why}: `higl sweep run {entry.name}` starts them")
    runs = [replace(read_run(run.folder), label=run.variant) for run in started]
    if entry.draw == "landmarks":
        run = next((run for run in runs if run.snapshots), runs[0])
        save(draw_landmarks(run, title=f"{entry.title}\n{run.title}"), out)
        line = f"{out}: {run.name}{'' if statuses[run.name].done else ', not finished'}"
    else:
        save(draw_curves(_panels(plan, runs, iqm), entry.title), out)
        unfinished = sum(not statuses[run.name].done for run in started)
        more = f", {unfinished} of them not finished" if unfinished else ""
        line = f"{out}: {len(runs)} of {len(plan)} runs{more}"
    return "\n".join([line, *left_out])


def _panels(plan: Sequence[PlannedRun], runs: Sequence[Run], iqm: bool) -> list[Panel]:
    """Return the panels in the entry's order."""
    order = list(dict.fromkeys(task_title(run.config.task, run.config.reward) for run in plan))
    panels = evaluation_panels(runs, iqm=iqm)
    return sorted(panels, key=lambda panel: order.index(panel.title) if panel.title in order else len(order))
