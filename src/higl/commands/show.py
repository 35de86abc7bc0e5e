"""`higl show`: a picture of a task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from higl.commands.arguments import Argument, Switch
from higl.commands.command import check_suffix, command
from higl.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """Draw a task at the start of a test episode into an image file."""

    task: Annotated[str, Argument(positional=True, metavar="TASK", missing="which task? `higl tasks` lists them")]
    """Short name or Gymnasium id of a built-in task."""
    out: Annotated[Path | None, Argument(alias="-o", metavar="FILE", default="TASK.png")] = None
    """File to write: png or jpg."""
    camera: Literal["top", "track"] = "top"
    """Camera: `top` looks down on the whole scene, `track` follows the body."""
    flat: Switch = False
    """Draw a plan, which needs no graphics library."""


@command("show", ShowOptions)
def show(options: ShowOptions) -> int:
    """Draw a task."""
    from higl.envs.show import draw_task
    from higl.envs.tasks import find_task

    try:
        task = find_task(options.task)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    out = options.out or Path(f"{task.name}.png")
    check_suffix(out, (".png", ".jpg"))
    print(draw_task(task, out, camera=options.camera, flat=True if options.flat else None))
    return 0
