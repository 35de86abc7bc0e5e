"""Every exception type of the package. Each message is one line that says what to do.

A `ValueError` means that the caller asked for something that cannot be done (the command line exits with 2); a
`RuntimeError` means that something failed on the way (it exits with 1).
"""

from __future__ import annotations


class SettingsError(ValueError):
    """A setting is unknown, has the wrong type, or is out of range."""


class TaskError(ValueError):
    """There is no such task, or the environment cannot be learned in."""


class EpisodeError(RuntimeError):
    """An environment raised an exception, or returned NaN or infinity."""


class NotFiniteError(RuntimeError):
    """A learned quantity became NaN or infinite."""


class RunFolderError(RuntimeError):
    """A run folder cannot be used: it is damaged, or another process is using it."""


class WrongFolderError(RunFolderError, ValueError):
    """The folder that was named is not the one that was meant."""


class CheckpointError(RuntimeError):
    """A checkpoint is damaged, has another format, or does not fit the run."""


class PolicyFileError(ValueError):
    """A policy file is missing, damaged, or has another format."""


class NoRunsError(ValueError):
    """None of the given paths contains a run."""


class NoSnapshotsError(RuntimeError):
    """A run has no snapshot to draw."""


class RenderError(RuntimeError):
    """Rendering is not possible here; the message says what to install."""


class ExportError(RuntimeError):
    """A policy cannot be exported here; the message says what to install."""


class TrackerError(RuntimeError):
    """A tracker failed."""


class PortError(RuntimeError):
    """The port is already in use."""


class CatalogueError(ValueError):
    """A catalogue is invalid, or has no such entry."""


class ResultsError(ValueError):
    """A result cannot be added or read."""


class RayError(RuntimeError):
    """Ray is not installed or cannot be reached."""


class SlurmError(RuntimeError):
    """submitit or Slurm is not available, or Slurm rejected a job."""
