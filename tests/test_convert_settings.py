"""`tools/convert_settings.py`: stored settings follow a change of the settings."""

import json
import runpy
import shutil
import tomllib
from pathlib import Path

import pytest
import tomli_w

from higl import pretrained
from higl.errors import RunFolderError
from higl.run.files import CONFIG, FACTS, POLICY
from higl.run.policy_file import load_policy, read_arrays, write_arrays
from higl.run.reading import read_config, read_facts

ROOT = Path(__file__).parents[1]
main = runpy.run_path(str(ROOT / "tools" / "convert_settings.py"))["main"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def shipped(tmp_path) -> Path:
    return Path(shutil.copytree(pretrained.pretrained_run("point-maze"), tmp_path / "shipped"))


@pytest.fixture
def old(shipped) -> Path:
    """The folder as an earlier version wrote it: without `low.normalise`, with `low.gone`, in format 1."""
    write_old_settings(shipped)
    facts = json.loads((shipped / FACTS).read_text())
    (shipped / FACTS).write_text(json.dumps(facts | {"format": 1}, indent=1) + "\n")
    return shipped


def write_old_settings(folder: Path) -> None:
    settings = tomllib.loads((folder / CONFIG).read_text())
    del settings["low"]["normalise"]
    settings["low"]["gone"] = 3
    (folder / CONFIG).write_text(tomli_w.dumps(settings))
    metadata, arrays = read_arrays(folder / POLICY)
    write_arrays(folder / POLICY, metadata | {"format": "1", "config": json.dumps(settings)}, arrays)


def test_an_old_folder_becomes_what_it_would_be_today(old):
    with pytest.raises(RunFolderError):
        read_facts(old)
    today = pretrained.pretrained_run("point-maze")
    normalise = str(read_config(today).low.normalise).lower()
    assert main([str(old), "--set", f"low.normalise={normalise}", "--drop", "low.gone"]) == 0
    for name in (CONFIG, FACTS):
        assert (old / name).read_bytes() == (today / name).read_bytes()
    (metadata, arrays), (expected, weights) = read_arrays(old / POLICY), read_arrays(today / POLICY)
    assert metadata == expected
    assert {name: array.tolist() for name, array in arrays.items()} == {
        name: array.tolist() for name, array in weights.items()
    }
    assert load_policy(old / POLICY)[1] == read_config(old)


def test_a_renamed_setting_keeps_its_value(shipped):
    today = pretrained.pretrained_run("point-maze")
    settings = tomllib.loads((shipped / CONFIG).read_text())
    settings["low"]["width"] = settings.pop("hidden")
    (shipped / CONFIG).write_text(tomli_w.dumps(settings))
    assert main([str(shipped), "--rename", "low.width=hidden", "--set", "hidden=[7]"]) == 0
    assert (shipped / CONFIG).read_bytes() == (today / CONFIG).read_bytes()


def test_stored_values_are_kept(shipped, capsys):
    before = contents(shipped)
    assert main([str(shipped), "--set", "landmarks.coverage=7"]) == 0
    assert contents(shipped) == before
    assert "3 files read, 0 changed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--drop", "low.gone"], "missing setting low.normalise"),
        (["--set", "low.normalise=true"], "unknown setting low.gone"),
        (["--set", "low.normalise=4", "--drop", "low.gone"], "low.normalise = 4: expected true or false"),
        (["--set", "low.normalise"], "expected NAME=VALUE"),
        (["--rename", "low.gone"], "--rename low.gone: expected OLD=NEW"),
    ],
)
def test_nothing_is_written_after_an_error(old, options, message, capsys):
    before = contents(old)
    assert main([str(old), *options]) == 2
    assert message in capsys.readouterr().err
    assert contents(old) == before


def test_a_damaged_policy_is_rejected(shipped, capsys):
    damaged = bytearray((shipped / POLICY).read_bytes())
    damaged[-1] ^= 1
    (shipped / POLICY).write_bytes(bytes(damaged))
    assert main([str(shipped)]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_the_results_of_the_repository_are_up_to_date(tmp_path, capsys):
    folder = shutil.copytree(ROOT / "results", tmp_path / "results")
    before = contents(folder)
    assert main([str(folder)]) == 0
    assert contents(folder) == before
