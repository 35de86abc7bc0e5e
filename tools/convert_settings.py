"""Convert stored settings after a setting was added, dropped or renamed in `settings/config.py`.

    python tools/convert_settings.py results src/higl/pretrained --set low.normalise=false --drop landmarks.middle
    python tools/convert_settings.py results src/higl/pretrained --rename low.hidden=hidden --drop high.hidden

Below the given folders it rewrites the settings in `config.toml` and `policy.safetensors` (with its checksum), and the
format version of these policies, of `run.json` and of `facts.json`. It writes nothing unless every file can be
converted. A setting that a file already holds keeps its value.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from higl.errors import PolicyFileError, SettingsError
from higl.run.files import CONFIG, FACTS, POLICY, replace_file
from higl.run.files import FORMAT as RUN_FORMAT
from higl.run.policy_file import FORMAT as POLICY_FORMAT
from higl.run.policy_file import arrays_bytes, read_arrays
from higl.settings.config import Config
from higl.settings.flat import flat
from higl.settings.layers import complete_config, to_toml
from higl.sweep.results import RESULT_FACTS, RESULT_FORMAT
from higl.text import counted


def main(arguments: Sequence[str] | None = None) -> int:
    """Convert folders and return the exit code: 0 done, 2 nothing written because of an error."""
    parser = argparse.ArgumentParser(description="Convert stored settings to the current ones.")
    parser.add_argument("folders", nargs="+", type=Path, help="folders to search, such as results")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="value of a new setting")
    parser.add_argument("--drop", action="append", default=[], metavar="NAME", help="setting that no longer exists")
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW", help="new name of a setting")
    options = parser.parse_args(arguments)
    try:
        change = Change(_parse(options.set), options.drop, _names(options.rename))
        found = {path: convert(path, change) for folder in options.folders for path in _files(folder)}
    except (PolicyFileError, SettingsError) as error:
        print(f"convert_settings: {error}; nothing was written", file=sys.stderr)
        return 2
    changed = {path: content for path, content in found.items() if path.read_bytes() != content}
    for path, content in changed.items():
        replace_file(path, content)
    print(f"{counted(len(found), 'file')} read, {len(changed)} changed")
    return 0


class Change(NamedTuple):
    """What has changed, by dotted names: values of settings that a file may lack, settings to remove, new names."""

    new: Mapping[str, Any]
    drop: Sequence[str]
    rename: Mapping[str, str]


def convert(path: Path, change: Change) -> bytes:
    """Return the new content of a file of a run or of a result.

    Raises:
        SettingsError: a setting is still missing or unknown, or has a wrong value.
        PolicyFileError: a policy is damaged.
    """
    if path.name == CONFIG:
        return to_toml(_settings(path, tomllib.loads(path.read_text(encoding="utf-8")), change)).encode()
    if path.name == POLICY:
        metadata, arrays = read_arrays(path, any_format=True)
        config = _settings(path, json.loads(metadata["config"]), change)
        wanted = metadata | {"format": POLICY_FORMAT, "config": json.dumps(asdict(config))}
        # safetensors writes metadata in any order: the same content gives other bytes.
        return path.read_bytes() if wanted == metadata else arrays_bytes(wanted, arrays)
    facts = json.loads(path.read_text(encoding="utf-8"))
    facts["format"] = RUN_FORMAT if path.name == FACTS else RESULT_FORMAT
    return (json.dumps(facts, indent=1) + "\n").encode()


def _files(folder: Path) -> list[Path]:
    """Return the files to convert below a folder."""
    found = [place.with_name(name) for place in folder.rglob(CONFIG) for name in (CONFIG, POLICY, FACTS, RESULT_FACTS)]
    if not found:
        raise SettingsError(f"{folder}: no {CONFIG} below it")
    return sorted(path for path in found if path.exists())


def _settings(path: Path, stored: Mapping[str, Any], change: Change) -> Config:
    named = {change.rename.get(name, name): value for name, value in flat(stored).items()}
    layer = {name: value for name, value in (dict(change.new) | named).items() if name not in change.drop}
    try:
        return complete_config(layer)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def _parse(pairs: Sequence[str]) -> dict[str, Any]:
    """Return settings given as `NAME=VALUE`, with values written as in TOML."""
    try:
        return flat(tomllib.loads("\n".join(pairs)))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"--set {' '.join(pairs)}: expected NAME=VALUE as in TOML ({error})") from None


def _names(pairs: Sequence[str]) -> dict[str, str]:
    """Return new names by old ones, given as `OLD=NEW`."""
    for pair in pairs:
        if not all(pair.partition("=")):
            raise SettingsError(f"--rename {pair}: expected OLD=NEW")
    return {old: new for old, _, new in (pair.partition("=") for pair in pairs)}


if __name__ == "__main__":
    sys.exit(main())
