"""Start the process of a run: its settings file, its command and its environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from higl.run.files import replace_file
from higl.run.reading import is_run, read_config
from higl.settings.layers import layer_to_toml, to_toml
from higl.sweep.plan import PlannedRun

WORKER = ("-P", "-m", "higl.sweep.worker")
"""The program that Python runs for a run: its arguments are the parent's process id, the folder, a `higl` command.

`-P`, as for the script `higl`: files in the working directory must not take the place of installed packages. A task
`module:id` is found there all the same, see `higl.envs.trust`.
"""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PJRT_NPROC", "NPROC")
# Slurm sends these to every process of a job. They are meant for the supervising process and would kill the run.
_BLOCKED_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)


def write_settings(run: PlannedRun) -> None:
    """Write the settings file from which the process of a run starts.

    It holds every setting, so that later changes to the presets do not affect the run. If the run derives settings
    from its environment, it holds the given ones only.
    """
    run.settings_file.parent.mkdir(parents=True, exist_ok=True)
    text = layer_to_toml(run.given) if run.derives else to_toml(run.config)
    replace_file(run.settings_file, text.encode())


def start_process(
    run: PlannedRun, checkpoint_minutes: float, cores: Sequence[int] = (), *, program: Sequence[str] = WORKER
) -> subprocess.Popen:
    """Start or continue a run in a child process, which stops when this process ends.

    The child has a session of its own, so that Ctrl-C in the terminal reaches it only through this process. Its output
    is appended to the run's output file.
    """
    command = [sys.executable, *program, str(os.getpid()), str(run.folder), *arguments(run, checkpoint_minutes, cores)]
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED_SIGNALS)  # the child inherits the mask
    try:
        with open(run.output_file, "ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_environment(),
                start_new_session=True,
            )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)


def arguments(run: PlannedRun, checkpoint_minutes: float, cores: Sequence[int] = ()) -> list[str]:
    """Return the arguments of `higl` that start or continue a run."""
    if is_run(run.folder) and (run.derives or read_config(run.folder).steps != run.config.steps):
        words = ["resume", str(run.folder), "--steps", str(run.config.steps)]
    else:
        words = ["train", "--config", str(run.settings_file), "--out", str(run.folder), "--resume"]
    words += ["--quiet", f"--checkpoint-minutes={checkpoint_minutes:g}", *["--trust"] * run.trusted]
    return [*words, "--cores", *map(str, cores)] if cores else words


def _environment() -> dict[str, str]:
    """Return the environment of a run that shares its machine with others: one thread per library."""
    return dict.fromkeys(_THREAD_VARIABLES, "1") | dict(os.environ)
