"""The table of `higl tasks` and the image of `higl show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

from higl.envs.base import GoalEnv
from higl.envs.maze import MazeEnv
from higl.envs.tasks import TASKS, FixedGoal, Goal, Task, UniformGoal, find_task
from higl.errors import RenderError

PICTURE_SIZE = 800
_WIDE = 120
_SEED = 0
_INK = {"wall": "#5c6b80", "floor": "#eef0f2", "body": "#bf9a6b", "goal": "#d92626", "start": "#2c7a4b"}


def tasks_table(width: int = 120) -> Any:
    """Return the tasks as a rich table, without descriptions below 120 columns."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("task, Gymnasium id", "training goal", "test goal"):
        table.add_column(heading, no_wrap=True)
    for heading in ("within", "steps"):
        table.add_column(heading, justify="right")
    if width >= _WIDE:
        table.add_column("what")
    for task in TASKS:
        train, test = _goal_text(task.train_goal), _goal_text(task.test_goal)
        cells = [f"[bold]{task.name}[/]\n[dim]{task.id}[/]", train, "the same" if test == train else test]
        cells += [f"{task.radius:g}", str(task.max_steps), task.description]
        table.add_row(*cells[: len(table.columns)])
    return table


def print_tasks() -> None:
    """Print the table of tasks to the terminal."""
    from rich.console import Console

    console = Console()
    console.print(tasks_table(console.width))


def _goal_text(goal: Goal) -> str:
    if isinstance(goal, FixedGoal) and len(goal.at) == 6:  # the pusher's goal is the target twice
        return str(FixedGoal(goal.at[3:]))
    return str(goal)


def draw_task(task: str | Task, path: str | Path, *, camera: str = "top", flat: bool | None = None) -> str:
    """Draw a task at the start of a test episode into an image file.

    Args:
        task: short name, id or task.
        path: file to write; its suffix determines the format.
        camera: "top" or "track"; a plan is always from above.
        flat: True draws a plan, which needs no GL library; False requires MuJoCo's renderer; None uses MuJoCo's
            renderer and falls back to the plan without a GL library.

    Returns:
        One line that describes the image.

    Raises:
        RenderError: `flat=False` and there is no usable GL library; the message names the packages.
        ValueError: no such task.
    """
    found = find_task(task) if isinstance(task, str) else task
    path = Path(path)
    env = gymnasium.make(
        found.id, mode="test", render_mode="rgb_array", camera=camera, width=PICTURE_SIZE, height=PICTURE_SIZE
    )
    try:
        env.reset(seed=_SEED)
        if flat:
            draw_flat(env.unwrapped, path)  # ty: ignore
            return f"{found.id}, plan from above: {path}"
        try:
            _write_picture(env.render(), path)
        except RenderError as error:
            if flat is False:
                raise
            draw_flat(env.unwrapped, path)  # ty: ignore
            return f"{found.id}: {path} (drawn as a plan: MuJoCo {error})"
        return f"{found.id}, camera {camera!r}: {path}"
    finally:
        env.close()


def _write_picture(picture: Any, path: Path) -> None:
    import imageio.v3 as iio

    path.parent.mkdir(parents=True, exist_ok=True)
    iio.imwrite(path, picture)


def draw_flat(env: GoalEnv, path: str | Path) -> None:
    """Draw the current state of an environment as a plan from above, with matplotlib and without a GL library.

    Mazes also show their start cells and the range of training goals.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, Rectangle

    figure = Figure(figsize=(6, 6), layout="constrained")
    axes = figure.add_subplot()
    low_x, low_y, high_x, high_y = env.extent()
    axes.set(xlim=(low_x, high_x), ylim=(low_y, high_y), aspect="equal", xlabel="x", ylabel="y", title=env.task.id)
    axes.set_facecolor(_INK["floor"])
    mujoco.mj_kinematics(env.model, env.data)
    for geom in range(env.model.ngeom):
        _draw_geom(axes, env, geom)
    goal = env.goal[-3:] if len(env.goal) == 6 else env.goal
    axes.add_patch(Circle((goal[0], goal[1]), env.task.radius, color=_INK["goal"], alpha=0.2, lw=0))
    axes.plot(goal[0], goal[1], "o", color=_INK["goal"], label=f"goal, success within {env.task.radius:g}")
    if isinstance(env, MazeEnv):
        starts = np.array([env.maze.centre(cell) for cell in env.maze.starts])
        axes.plot(starts[:, 0], starts[:, 1], "+", color=_INK["start"], label="start")
        if isinstance(env.task.train_goal, UniformGoal):
            (left, bottom), (right, top) = env.task.train_goal.low, env.task.train_goal.high
            box = Rectangle((left, bottom), right - left, top - bottom, fill=False, ls="--", ec=_INK["goal"])
            box.set_label("training goals")
            axes.add_patch(box)
    axes.legend(loc="upper right", fontsize="small")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=PICTURE_SIZE / 6)


def _draw_geom(axes: Any, env: GoalEnv, geom: int) -> None:
    """Draw one geom of the model from above, except planes and goal markers."""
    from matplotlib.patches import Circle, Polygon

    kind, size = env.model.geom_type[geom], env.model.geom_size[geom]
    owner = env.model.body(env.model.geom_bodyid[geom]).name
    if kind == mujoco.mjtGeom.mjGEOM_PLANE or owner in ("goal_marker", "goal"):
        return
    x, y = env.data.geom_xpos[geom][:2]
    axis = env.data.geom_xmat[geom].reshape(3, 3)
    colour = _INK["wall"] if owner == "world" else _INK["body"]
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        corners = [(x, y) + i * size[0] * axis[:2, 0] + j * size[1] * axis[:2, 1] for i, j in _SQUARE]
        axes.add_patch(Polygon(corners, color=colour))
        return
    ends = [np.array((x, y))]
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        ends = [ends[0] + side * size[1] * axis[:2, 2] for side in (-1.0, 1.0)]
        across = np.array((-(ends[1] - ends[0])[1], (ends[1] - ends[0])[0]))
        length = float(np.hypot(*across))
        if length > 0.0:
            across *= size[0] / length
            axes.add_patch(
                Polygon([ends[0] - across, ends[1] - across, ends[1] + across, ends[0] + across], color=colour)
            )
    for end in ends:
        axes.add_patch(Circle((end[0], end[1]), size[0], color=colour))


_SQUARE = ((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0))
