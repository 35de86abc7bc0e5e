"""The paper's seven tasks as Gymnasium environments.

Importing this module registers the ids with Gymnasium: `import higl.envs`, then
`gymnasium.make("higl/AntMazeU-v0", reward="sparse", mode="test")`. `gymnasium.make("higl.envs:higl/AntMazeU-v0")`
imports the module itself. The package also declares the entry point `gymnasium.envs` for programs that load plugins;
Gymnasium stopped doing so in version 1.0. `higl/AntMaze-v0` takes your own map.
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
    """Register the ids with Gymnasium; calling it again does nothing."""
    for task in TASKS:
        _register(task.id, _ENTRY_POINTS[task.body], {"task": task.name} if task.map is not None else {})
    _register(OWN_MAZE_ID, "higl.envs.maze:MazeEnv", {})


def _register(id: str, entry_point: str, kwargs: dict[str, str]) -> None:
    if id not in gymnasium.registry:
        # The environments limit their steps, check actions and require reset() themselves.
        gymnasium.register(id, entry_point=entry_point, kwargs=kwargs, order_enforce=False, disable_env_checker=True)


register_envs()
