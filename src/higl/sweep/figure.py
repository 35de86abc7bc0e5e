"""The figure of a sweep, from whatever its runs have reached: reading and drawing are those of `higl.figures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from higl.errors import NoRunsError
from higl.figures.curves import Panel, draw_curves, evaluation_panels, save
from higl.figures.maps import draw_landmarks
from higl.run.naming import task_title
from higl.run.reading import Run, read_run
from higl.sweep.catalogue import Entry
from higl.sweep.plan import UNUSABLE, PlannedRun, standing


def draw(entry: Entry, plan: Sequence[PlannedRun], out: Path, *, iqm: bool = False) -> str:
    """Draw an entry's figure into a file; return a line that says what is in it, and one for each run left out.

    Landmark maps are those of one run: the first that has any. A folder that holds another run than the entry's is
    left out.

    Raises:
        NoRunsError: none of its runs has begun.
        NoSnapshotsError: there are landmark maps to draw, and no run has any yet.
    """
    standings = {run.name: standing(run) for run in plan}
    left_out = [f"left out: {name}: {now.reason}" for name, now in standings.items() if now.state in UNUSABLE]
    begun = [run for run in plan if standings[run.name].state not in ("waiting", *UNUSABLE)]
    if not begun:
        why = f" ({left_out[0]})" if left_out else ""
        raise NoRunsError(f"no run of {entry.name} has begun{why}: `higl sweep run {entry.name}` begins them")
    runs = [replace(read_run(run.folder), label=run.variant) for run in begun]
    if entry.draw == "landmarks":
        run = next((run for run in runs if run.snapshots), runs[0])
        save(draw_landmarks(run, title=f"{entry.title}\n{run.title}"), out)
        said = f"{out}: {run.name}{'' if standings[run.name].done else ', not finished'}"
    else:
        save(draw_curves(_panels(plan, runs, iqm), entry.title), out)
        unfinished = sum(not standings[run.name].done for run in begun)
        more = f", {unfinished} of them not finished" if unfinished else ""
        said = f"{out}: {len(runs)} of {len(plan)} runs{more}"
    return "\n".join([said, *left_out])


def _panels(plan: Sequence[PlannedRun], runs: Sequence[Run], iqm: bool) -> list[Panel]:
    """Return the panels in the entry's order."""
    order = list(dict.fromkeys(task_title(run.config.task, run.config.reward) for run in plan))
    panels = evaluation_panels(runs, iqm=iqm)
    return sorted(panels, key=lambda panel: order.index(panel.title) if panel.title in order else len(order))
