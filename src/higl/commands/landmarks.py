"""`higl landmarks`: maps of a run's landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from higl.commands.arguments import Argument, Out, Run, Switch
from higl.commands.command import PICTURES, check_suffix, command, only_run
from higl.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class LandmarksOptions:
    """Draw a run's landmark maps: visited states, landmarks and walls at several phases of training."""

    run: Run
    """Folder of a run."""
    out: Out = Path("landmarks.png")
    """File to write: png, svg or pdf."""
    phases: int = 4
    """Number of phases, evenly spaced over training; without a goal, over what was visited."""
    steps: Annotated[tuple[int, ...], Argument(metavar="STEP", default="")] = ()
    """Steps to show in place of evenly spaced phases; the nearest snapshots are drawn."""
    graph: Switch = False
    """Also draw the graph, the shortest path, the selected landmark, the pseudo-landmark and the subgoal."""


@command("landmarks", LandmarksOptions)
def landmarks(options: LandmarksOptions) -> int:
    """Draw a run's landmark maps."""
    check_suffix(options.out, PICTURES)
    if options.phases < 1:
        raise SettingsError("--phases must be 1 or more")
    from higl.figures.curves import save
    from higl.figures.maps import draw_landmarks

    run = only_run(options.run)
    save(draw_landmarks(run, options.phases, options.steps, graph=options.graph), options.out)
    print(f"{options.out}: {run.title}")
    return 0
