"""Layers of settings, checked: preset < TOML file < flags.

Each layer is a flat dict, `{"landmarks.coverage": 40}`. Every mistake is a `SettingsError` with a message of one line.
"""

from __future__ import annotations

import tomllib
import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import tomli_w

from higl.errors import SettingsError
from higl.settings.config import Config
from higl.settings.flat import Layer, flat, flat_config, nested
from higl.settings.presets import preset
from higl.text import did_you_mean


@cache
def setting_types(kind: type, prefix: str = "") -> Mapping[str, Any]:
    """Return the type of every setting of a (nested) dataclass by its dotted name."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            found |= setting_types(hint, f"{prefix}{name}.")
        else:
            found[prefix + name] = hint
    return found


def build_config(flags: Layer, file: Path | None = None) -> Config:
    """Return the settings of a run: the preset of its task and algorithm, changed by a file, then by flags.

    Raises:
        SettingsError: a setting is unknown or has a wrong value, or there is no task.
    """
    layers = [flags] if file is None else [read_settings(file), flags]
    chosen: Layer = {"task": None, "algo": "higl", "preset": "best", "goal": "given"}
    for layer in layers:
        chosen |= {name: layer[name] for name in chosen if name in layer}
    if chosen["task"] is None:
        raise SettingsError("no task: `higl train TASK`; `higl tasks` lists them")
    for name in chosen:
        _convert({name: chosen[name]})
    config = preset(chosen["task"], chosen["algo"], chosen["preset"], chosen["goal"])
    task = config.task  # of the last layer that names one, by its short name
    if file is not None:
        config = _from_file(file, config, layers[0])
    config = replace(apply(config, flags), task=task)
    if config.algo != "higl" and not any("adjacency.degree" in layer for layer in layers):
        config = apply(config, {"adjacency.degree": config.high.period})  # k = m, as in the presets
    return config


def given_settings(flags: Layer, file: Path | None = None) -> set[str]:
    """Return the names of the settings that a user gave in a file or as flags."""
    return set(flags) | (set(read_settings(file)) if file is not None else set())


def _from_file(file: Path, config: Config, layer: Layer) -> Config:
    try:
        return apply(config, layer)
    except SettingsError as error:
        raise SettingsError(f"{file}: {error}") from None


def apply(config: Config, layer: Mapping[str, Any]) -> Config:
    """Return a configuration with some settings replaced.

    Raises:
        SettingsError: a setting is unknown or has a wrong value.
    """
    return complete_config(flat_config(config) | dict(layer))


def complete_config(layer: Mapping[str, Any]) -> Config:
    """Return the configuration of a layer that must hold every setting, such as that of a run folder.

    Raises:
        SettingsError: a setting is missing, unknown, or has a wrong value.
    """
    known = setting_types(Config)
    check_names(layer, known)
    missing = [name for name in known if name not in layer]
    if missing:
        raise SettingsError(f"missing setting{'s' * (len(missing) > 1)} {', '.join(missing)}")
    config = _convert(dict(layer))
    check_ranges(config)
    _check_goal(config)
    return config


def _convert(values: Layer) -> Config:
    values = {name: _without_numpy(value) for name, value in values.items()}
    try:
        return msgspec.convert(nested(values), Config)
    except msgspec.ValidationError as error:
        name = str(error).partition("`$.")[2].rstrip("`").partition("[")[0]
        shown = msgspec.json.encode(values.get(name), enc_hook=str).decode()
        expected = describe(setting_types(Config)[name]) if name in values else str(error)
        raise SettingsError(f"{name} = {shown}: expected {expected}") from None


def _without_numpy(value: Any) -> Any:
    """Return NumPy's scalars and arrays as Python's own numbers and lists; any other value unchanged."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_without_numpy, value))
    return value.tolist() if hasattr(value, "dtype") and hasattr(value, "tolist") else value


def check_names(names: Iterable[str], known: Iterable[str], *, flag: str = "") -> None:
    """Reject an unknown setting, and suggest the nearest known one."""
    known = list(known)
    for name in names:
        if name in known:
            continue
        if part := [other for other in known if other.startswith(f"{name}.")]:
            raise SettingsError(f"{flag}{name} is a group of settings: name one of them, such as {flag}{part[0]}")
        raise SettingsError(f"unknown {'option' if flag else 'setting'} {flag}{name}{did_you_mean(name, known, flag)}")


# --- Ranges ---------------------------------------------------------------------------------------------------------

SEED_LIMIT = 2**32
"""Seeds are smaller: NumPy, Gymnasium and JAX all accept those."""
SEED_RANGE = f"from 0 to {SEED_LIMIT - 1:,}"
_POSITIVE, _AT_LEAST_0, _SHARE, _PART = "more than 0", "0 or more", "from 0 to 1", "more than 0, up to 1"

# By the last part of the name: settings of the same name have the same range in every group.
_RANGES = {
    _POSITIVE: (
        "steps num_envs every episodes epochs batch_size buffer_size period hidden degree cell pool all_pairs_up_to "
        "actor_learning_rate subgoal_range goal_unit reward_scale cutoff updates critic_updates"
    ),
    _AT_LEAST_0: (
        "hidden_entries angles exploration target_noise target_noise_clip "
        "coverage novelty start coefficient margin delta similarity goal_within shift random_steps "
        "random_sigma average"
    ),
    _SHARE: "discount exchange",
    _PART: "action_share",
    SEED_RANGE: "seed",
}
_RANGE_OF = {name: bound for bound, names in _RANGES.items() for name in names.split()}


def check_ranges(config: Config) -> None:
    """Reject numbers outside the range of their setting."""
    for name, value in flat_config(config).items():
        bound = _RANGE_OF.get(name.rpartition(".")[2], "")
        numbers = value if isinstance(value, (tuple, list)) else (value,)
        for number in numbers if bound else ():
            # Written so that NaN is outside of every range.
            within = number >= 0 and (bound not in (_POSITIVE, _PART) or number > 0)
            within = within and (bound not in (_SHARE, _PART) or number <= 1)
            within = within and (bound != SEED_RANGE or number < SEED_LIMIT)
            if not within or number == float("inf"):
                raise SettingsError(f"{name} = {number}: expected a number {bound}")
        if name in ("hidden", "high.subgoal_range") and not numbers:
            raise SettingsError(f"{name}: expected at least one number")


def _check_goal(config: Config) -> None:
    """Reject settings that cannot explore without a goal."""
    if config.algo == "higl" and config.draws_goals:
        needed = 'landmarks.graph = "walked", and landmarks.coverage of 1 or more'
        raise SettingsError(f'goal = "none": higl needs {needed} (the preset best has both)')


# --- Files ----------------------------------------------------------------------------------------------------------


def read_settings(path: Path) -> Layer:
    """Return the settings of a TOML file as a flat dict.

    Raises:
        SettingsError: the file cannot be read, is not TOML, or has an unknown setting.
    """
    try:
        layer = flat(tomllib.loads(path.read_text(encoding="utf-8")))
        check_names(layer, setting_types(Config))
    except OSError as error:
        raise SettingsError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not a TOML file: {' '.join(str(error).split())}") from None
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    return layer


def to_toml(config: Config) -> str:
    """Return all settings as TOML, as `higl train --config` takes them."""
    return tomli_w.dumps(asdict(config))


def layer_to_toml(layer: Layer) -> str:
    """Return some settings as TOML."""
    return tomli_w.dumps(nested(layer))


def toml_line(name: str, value: Any) -> str:
    """Return a setting as one line of TOML: `high.subgoals = "relative"`."""
    return f"{name} = {_toml_value(value)}"


def _toml_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):  # tomli_w would write one entry per line
        return f"[{', '.join(map(_toml_value, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip()


def describe(kind: Any) -> str:
    """Return the words for a type in messages: 'a whole number', 'one of sparse, dense'."""
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a word", Path: "a path"}
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return f"any number of: {describe(get_args(kind)[0])}"
    if get_origin(kind) in (Union, types.UnionType):
        return describe(next(option for option in get_args(kind) if option is not type(None)))
    return words.get(kind, str(kind))
