"""Checkpoints: the complete state of a run, written so that a crash at any moment loses no earlier checkpoint.

A checkpoint is a folder `STEP/` with the arrays (`state.safetensors`) and a manifest (`manifest.json`: format,
counters, sizes and SHA-256). It is written under another name, flushed to disk and then renamed, so that a folder
under its final name is complete. Reading verifies the checksums and cannot execute code.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from higl import __version__
from higl.algo.learner import Learner
from higl.algo.replay import Buffer
from higl.errors import CheckpointError
from higl.run.files import flush_folder, write_durably
from higl.text import timestamp

FORMAT = 7
KEPT = 2

_STATE = "state.safetensors"
_MANIFEST = "manifest.json"
# Prefix of folders that are being written or removed; a crash may leave them behind.
_UNFINISHED = "."

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Counters:
    """Environment steps, episodes, seconds of work, and the lengths of the logs in bytes, at a checkpoint.

    `before`: the steps of the run that this one started from.
    """

    steps: int = 0
    episodes: int = 0
    seconds: float = 0.0
    log_lengths: dict[str, int] = field(default_factory=dict)
    before: int = 0


class Checkpoints:
    """The checkpoints of one run: the newest few, each in a folder named after its step."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._damaged: set[str] = set()

    def save(self, arrays: Arrays, counters: Counters) -> Path:
        """Write a checkpoint, then remove the older ones, so that `KEPT` are left with it.

        Raises:
            OSError: it could not be written, for example because the disk is full; the older ones are untouched.
        """
        self.folder.mkdir(exist_ok=True)
        self.remove_leftovers()
        final = self.folder / f"{counters.steps:012d}"
        beside = self.folder / f"{_UNFINISHED}new-{final.name}"
        try:
            _write(beside, arrays, counters)
            if final.exists():  # damaged: the run would have continued from an intact one
                self._remove(final)
            beside.rename(final)
        except OSError:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        flush_folder(self.folder)
        self._damaged.discard(final.name)
        # A later one is damaged, or the run would have continued from it. Damaged ones are kept until there are enough
        # intact ones.
        finished = self._finished()
        damaged = [place for place in finished if place.name in self._damaged or place.name > final.name]
        intact = [place for place in finished if place not in damaged]
        for old in intact[:-KEPT] + (damaged if len(intact) >= KEPT else []):
            self._remove(old)
        return final

    def load(self, warn: Callable[[str], None]) -> tuple[Arrays, Counters] | None:
        """Return the newest intact checkpoint, or None if there are no checkpoints. Warns of each damaged one.

        Raises:
            CheckpointError: there are checkpoints, and all are damaged.
        """
        problems = []
        for place in reversed(self._finished()):
            try:
                return _read(place)
            except CheckpointError as problem:
                problems.append(str(problem))
                self._damaged.add(place.name)
                warn(f"{problem}; trying the one before")
        if problems:
            raise CheckpointError("no usable checkpoint: " + "; ".join(problems))
        return None

    def remove_leftovers(self) -> None:
        """Remove leftovers of a crash while a checkpoint was being written or removed."""
        if self.folder.is_dir():
            for leftover in self.folder.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(leftover, ignore_errors=True)

    def _finished(self) -> list[Path]:
        """Return the checkpoints' folders, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(place for place in self.folder.iterdir() if place.is_dir() and place.name.isdecimal())

    def _remove(self, place: Path) -> None:
        """Remove a checkpoint; renamed first, so that a crash in between cannot leave half of one under its name."""
        leaving = place.with_name(f"{_UNFINISHED}old-{place.name}")
        place.rename(leaving)
        shutil.rmtree(leaving, ignore_errors=True)


def _write(place: Path, arrays: Arrays, counters: Counters) -> None:
    """Write the files of a checkpoint into a new folder and flush them to disk."""
    place.mkdir()
    state = safetensors.numpy.save(arrays)
    write_durably(place / _STATE, state)
    manifest = {
        "format": FORMAT,
        "higl": __version__,
        "written": timestamp(),
        "counters": asdict(counters),
        "files": {_STATE: {"bytes": len(state), "sha256": hashlib.sha256(state).hexdigest()}},
    }
    manifest["sha256"] = _digest(manifest)
    write_durably(place / _MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    flush_folder(place)


def _digest(manifest: dict[str, Any]) -> str:
    """Return the checksum of a manifest without its checksum."""
    rest = {name: value for name, value in manifest.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _read(place: Path) -> tuple[Arrays, Counters]:
    """Read and check a checkpoint.

    Raises:
        CheckpointError: it is damaged; the message says how.
    """
    name = f"checkpoint {int(place.name)} ({place})"
    manifest = _read_manifest(place, name)
    facts = manifest["files"][_STATE]
    try:
        state = (place / _STATE).read_bytes()
    except OSError as error:
        raise CheckpointError(f"{name}: {_STATE} cannot be read ({error.strerror})") from None
    if len(state) != facts["bytes"]:
        raise CheckpointError(f"{name}: {_STATE} has {len(state)} bytes where {facts['bytes']} were written")
    if hashlib.sha256(state).hexdigest() != facts["sha256"]:
        raise CheckpointError(f"{name}: {_STATE} is damaged (its checksum differs)")
    try:
        return safetensors.numpy.load(state), Counters(**manifest["counters"])
    except (SafetensorError, TypeError) as error:
        raise CheckpointError(f"{name}: {error}") from None


def _read_manifest(place: Path, name: str) -> dict[str, Any]:
    try:
        manifest = json.loads((place / _MANIFEST).read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"{name}: {_MANIFEST} is missing") from None
    except OSError as error:
        raise CheckpointError(f"{name}: {_MANIFEST} cannot be read ({error.strerror})") from None
    except ValueError:
        raise CheckpointError(f"{name}: {_MANIFEST} is damaged (not JSON)") from None
    if not isinstance(manifest, dict) or manifest.get("sha256") != _digest(manifest):
        raise CheckpointError(f"{name}: {_MANIFEST} is damaged (its checksum differs)")
    if manifest["format"] != FORMAT:
        raise CheckpointError(
            f"{name}: written by higl {manifest['higl']} in format {manifest['format']}; "
            f"this is higl {__version__}, which reads format {FORMAT}"
        )
    return manifest


# --- The state of a learner -------------------------------------------------------------------------------------------


def learner_arrays(learner: Learner) -> Arrays:
    """Return the complete state of a learner by name; of the buffers, the filled rows."""
    state = learner.state
    state = state._replace(low_buffer=_filled(state.low_buffer), high_buffer=_filled(state.high_buffer))
    arrays = {name: np.asarray(leaf) for name, leaf in _named_leaves(state)}
    for part, holder in _host_parts(learner).items():
        arrays |= {f"{part}.{name}": array for name, array in holder.arrays().items()}
    return arrays


def _host_parts(learner: Learner) -> dict[str, Any]:
    """Return the parts of a learner that are kept on the host; each has `arrays` and `restore`."""
    return {"matrix": learner.matrix} | ({"map": learner.map} if learner.map is not None else {})


def restore_newest(learner: Learner, checkpoints: Checkpoints, warn: Callable[[str], None]) -> Counters | None:
    """Give a new learner the state of the newest intact checkpoint; return its counters, None without a checkpoint.

    Raises:
        CheckpointError: all checkpoints are damaged, or the newest does not fit the learner.
    """
    found = checkpoints.load(warn)
    if found is None:
        return None
    arrays, counters = found
    restore_learner(learner, arrays, counters)
    return counters


def restore_learner(learner: Learner, arrays: Arrays, counters: Counters) -> None:
    """Give a new learner the state that `arrays` came from.

    Raises:
        CheckpointError: the arrays belong to other settings or to another version of the program.
    """
    parts = _host_parts(learner)
    held = {part: _with_prefix(arrays, f"{part}.") for part in parts}
    arrays = {name: array for name, array in arrays.items() if name.partition(".")[0] not in parts}
    expected = _named_leaves(learner.state)
    missing = sorted({name for name, _ in expected} ^ arrays.keys()) + [part for part in parts if not held[part]]
    if missing:
        raise CheckpointError(f"the checkpoint was written by another version of the learner (see {missing[0]})")
    leaves = [_fitted(name, arrays[name], leaf) for name, leaf in expected]
    learner.state = jax.tree.unflatten(jax.tree.structure(learner.state), leaves)
    for part, holder in parts.items():
        holder.restore(held[part])
    learner.steps, learner.episodes, learner.before = counters.steps, counters.episodes, counters.before


def _with_prefix(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """Return the arrays of a pytree with names like `low.networks.actor.0.weight`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]


def _filled(buffer: Buffer) -> Buffer:
    """Return a buffer with its filled rows only: the first ones until it is full, then all."""
    size = int(buffer.size)
    return buffer._replace(rows=jax.tree.map(lambda column: np.asarray(column)[:size], buffer.rows))


def _fitted(name: str, array: np.ndarray, leaf: jax.Array) -> jax.Array:
    """Return a saved array in the learner's shape; the empty rows of a buffer are zero."""
    grown = array
    if "_buffer.rows." in name and array.shape[1:] == leaf.shape[1:] and len(array) < len(leaf):
        grown = np.zeros(leaf.shape, array.dtype)
        grown[: len(array)] = array
    if grown.shape != leaf.shape or grown.dtype != leaf.dtype:
        raise CheckpointError(f"the checkpoint does not fit these settings: {name} is {array.shape}, not {leaf.shape}")
    # A copy: the learner writes into its buffers in place.
    return jnp.array(grown, copy=True)
