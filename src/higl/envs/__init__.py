"""The paper's seven tasks as Gymnasium environments.

Importing this module makes the ids known to Gymnasium: `import higl.envs`, then
`gymnasium.make("higl/AntMazeU-v0", reward="sparse", mode="test")`. So does naming it in the id,
`gymnasium.make("higl.envs:higl/AntMazeU-v0")`, which needs no import. The package also declares the entry point
`gymnasium.envs`, for programs that load such plugins; Gymnasium itself has not done so since its version 1.0.
`higl/AntMaze-v0` takes a map of one's own.
"""

from __future__ import annotations

import gymnasium

from higl.envs.tasks import TASKS, Task, find_task, task_names

OWN_MAZE_ID = "higl/AntMaze-v0"

__all__ = ["OWN_MAZE_ID", "TASKS", "Task", "find_task", "register_envs", "task_names"]

_ENTRY_POINTS = {
    "point": "higl.envs.maze:MazeEnv",
    "ant": "higl.envs.maze:MazeEnv",
    "reacher": "higl.envs.arm:ReacherEnv",
    "pusher": "higl.envs.arm:PusherEnv",
}


def register_envs() -> None:
    """Make the ids known to Gymnasium; calling it again does nothing."""
    for task in TASKS:
        _register(task.id, _ENTRY_POINTS[task.body], {"task": task.name} if task.map is not None else {})
    _register(OWN_MAZE_ID, "higl.envs.maze:MazeEnv", {})


def _register(id: str, entry_point: str, kwargs: dict[str, str]) -> None:
    if id not in gymnasium.registry:
        # The environments count their own steps, check their own actions and insist on reset() themselves.
        gymnasium.register(id, entry_point=entry_point, kwargs=kwargs, order_enforce=False, disable_env_checker=True)


register_envs()
