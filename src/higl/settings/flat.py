"""Settings as flat dicts, `{"landmarks.coverage": 40}`, and where several of them differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from higl.settings.config import Config
from higl.text import value_text

Layer = dict[str, Any]


def flat(nested: Mapping[str, Any], prefix: str = "") -> Layer:
    """Return nested settings as one dict with dotted names."""
    found: Layer = {}
    for name, value in nested.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return found


def nested(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return flat settings as nested dicts: the inverse of `flat`."""
    found: dict[str, Any] = {}
    for name, value in layer.items():
        *parts, last = name.split(".")
        place = found
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = value
    return found


def flat_config(config: Config) -> Layer:
    """Return all settings of a configuration as a flat dict."""
    return flat(asdict(config))


def differing(*settings: Config | Mapping[str, Any], leave_out: Collection[str] = ()) -> list[str]:
    """Return the names of the settings that are not equal in all of `settings` (configurations or flat dicts)."""
    layers = [flat_config(each) if isinstance(each, Config) else each for each in settings]
    names = dict.fromkeys(name for layer in layers for name in layer if name not in leave_out)
    return [name for name in names if any(layer.get(name) != layers[0].get(name) for layer in layers[1:])]


def differences(old: Config, new: Config, names: Collection[str]) -> list[str]:
    """Return these settings of two configurations, each as `name = old -> new`."""
    before, after = flat_config(old), flat_config(new)
    return [f"{name} = {value_text(before[name])} -> {value_text(after[name])}" for name in names]
