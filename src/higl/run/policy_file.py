"""`policy.safetensors`: both actors, the map, the settings and the spaces. Small; reading it cannot execute code."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from higl.algo.forward import MLP, Layer
from higl.algo.policy import Policy, Spaces
from higl.algo.subgoals import View, Views
from higl.algo.walked import Chart
from higl.errors import PolicyFileError, SettingsError
from higl.run.files import replace_file
from higl.settings.config import Config
from higl.settings.flat import flat
from higl.settings.layers import complete_config

FORMAT = "12"
KIND = "policy"


def save_policy(path: Path, policy: Policy, config: Config, spaces: Spaces) -> None:
    """Write everything that acting needs."""
    arrays = _layers("low", policy.low_actor) | _layers("high", policy.high_actor)
    if config.low.normalise:
        arrays |= _fields("view", policy.views.low)
    if policy.views.high is not None:
        arrays |= _fields("high_view", policy.views.high)
    if policy.chart is not None:
        arrays |= _fields("chart", policy.chart)
    metadata = {
        "format": FORMAT,
        "kind": KIND,
        "config": json.dumps(asdict(config)),
        "spaces": json.dumps(asdict(spaces)),
    }
    write_arrays(path, metadata, arrays)


def load_policy(path: Path) -> tuple[Policy, Config]:
    """Read a policy and the settings of its run.

    Raises:
        PolicyFileError: the file is missing, damaged, or has another format.
    """
    metadata, arrays = read_arrays(path)
    if metadata.get("kind") != KIND:
        raise PolicyFileError(f"{path} does not hold a policy (its kind is {metadata.get('kind')})")
    config = stored_config(path, metadata)
    spaces = msgspec.json.decode(metadata["spaces"], type=Spaces)
    views = _views(path, config, arrays)
    chart = Chart(**_named("chart", arrays)) if "chart.points" in arrays else None
    return Policy(config, spaces, _mlp("low", arrays), _mlp("high", arrays), views, chart), config


def _views(path: Path, config: Config, arrays: dict[str, np.ndarray]) -> Views | None:
    """Return how each level sees observations; None if nothing is normalised, so that the settings say it all."""
    if not config.low.normalise:
        return None
    if config.normalises_high != ("high_view.centre" in arrays):
        raise PolicyFileError(f"{path} was written by another version: its high level saw observations otherwise")
    high = View(**_named("high_view", arrays)) if config.normalises_high else None
    return Views(View(**_named("view", arrays)), high)


def stored_config(path: Path, metadata: dict[str, str]) -> Config:
    """Return the settings in a file's metadata.

    Raises:
        PolicyFileError: a setting is missing, unknown, or has a wrong value.
    """
    try:
        return complete_config(flat(json.loads(metadata["config"])))
    except SettingsError as error:
        raise PolicyFileError(f"{path}: {error}") from None


def write_arrays(path: Path, metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> None:
    """Write named arrays and metadata to one file, with a checksum of everything."""
    replace_file(path, arrays_bytes(metadata, arrays))


def arrays_bytes(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> bytes:
    """Return the content of such a file."""
    return safetensors.numpy.save(arrays, metadata | {"sha256": _digest(metadata, arrays)})


def read_arrays(path: Path, *, any_format: bool = False) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Read a file of arrays and verify its checksum. Reading cannot execute code.

    `any_format` accepts other formats than the current one, to convert files (`tools/convert_settings.py`).

    Raises:
        PolicyFileError: the file is missing, damaged, or has another format.
    """
    if path.is_dir():
        raise PolicyFileError(f"{path} is a folder, but not a run folder (it has no run.json)")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is not a dict)
    except FileNotFoundError:
        raise PolicyFileError(f"{path} is missing") from None
    except OSError as error:
        raise PolicyFileError(f"{path} cannot be read: {error}") from None
    except SafetensorError:
        raise PolicyFileError(f"{path} {_what_it_is(path)}") from None
    if not {"format", "sha256"} <= set(metadata):
        raise PolicyFileError(f"{path} is a safetensors file, but higl did not write it: it holds no policy of higl")
    if metadata.get("format") != FORMAT and not any_format:
        raise PolicyFileError(f"{path} has format {metadata.get('format')}; this version of higl reads format {FORMAT}")
    if metadata.pop("sha256", None) != _digest(metadata, arrays):
        raise PolicyFileError(f"{path} is damaged (its checksum differs)")
    return metadata, arrays


def _what_it_is(path: Path) -> str:
    """Return what is wrong with a file that is not in the format of safetensors."""
    with open(path, "rb") as file:
        start = file.read(512)
    if start[8:9] == b"{":  # after the size of the header
        return "is damaged: it is not a complete safetensors file"
    expected = "higl reads policies that it wrote itself (policy.safetensors)"
    if start[:1] == b"\x80" or start[:2] == b"PK":
        return f"is a pickle or an archive, perhaps of PyTorch: {expected}, since loading a pickle can run code"
    if start and b"\0" not in start and start.isascii():
        return f"is a text file, not a policy: {expected}"
    return f"is {'empty' if not start else 'not a safetensors file'}: {expected}"


def _layers(level: str, actor: MLP) -> dict[str, np.ndarray]:
    """Name the arrays of an actor."""
    return {
        f"{level}.{place}.{name}": np.ascontiguousarray(array)
        for place, layer in enumerate(actor)
        for name, array in layer._asdict().items()
    }


def _fields(part: str, value: Any) -> dict[str, np.ndarray]:
    """Name the arrays of a named tuple."""
    return {f"{part}.{name}": np.asarray(array, order="C") for name, array in value._asdict().items()}


def _named(part: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a named tuple by field."""
    return {name.removeprefix(f"{part}."): array for name, array in arrays.items() if name.startswith(f"{part}.")}


def _mlp(level: str, arrays: dict[str, np.ndarray]) -> MLP:
    """Rebuild an actor from its arrays."""
    count = len([name for name in arrays if name.startswith(f"{level}.") and name.endswith(".weight")])
    return tuple(Layer(arrays[f"{level}.{place}.weight"], arrays[f"{level}.{place}.bias"]) for place in range(count))


def _digest(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> str:
    """Return the checksum of metadata and arrays."""
    checksum = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(arrays):
        checksum.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        checksum.update(arrays[name].tobytes())
    return checksum.hexdigest()
