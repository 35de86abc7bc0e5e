"""`load_policy`: a trained policy that acts without JAX, MuJoCo and Gymnasium, on a robot for example."""

from __future__ import annotations

from pathlib import Path

from higl.algo.policy import Policy
from higl.errors import WrongFolderError
from higl.pretrained import available, pretrained_run
from higl.run import policy_file
from higl.run.reading import policy_path


def load_policy(path: str | Path) -> Policy:
    """Return a trained policy; its `predict` acts. Loading cannot execute code from the file.

    Neither loading nor acting imports JAX, MuJoCo or Gymnasium.

    Args:
        path: A policy file, a run folder, or a task whose trained policy comes with higl: "ant-maze-u".

    Raises:
        PolicyFileError: the file is damaged, or was not written by higl.
        RunFolderError: there is no such policy, or the run has none yet.
    """
    return policy_file.load_policy(_find(Path(path)))[0]


def _find(path: Path) -> Path:
    """Return the policy file that a path or the name of a task stands for.

    Raises:
        RunFolderError: there is none.
    """
    if path.exists():
        return policy_path(path)
    try:
        return policy_path(pretrained_run(str(path)))
    except WrongFolderError:
        raise WrongFolderError(
            f"{path} does not exist, and no trained policy of that name comes with higl (there are: "
            f"{', '.join(available())})"
        ) from None
