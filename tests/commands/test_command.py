"""What the commands share: exit codes, one-line errors, help, groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from higl.commands.arguments import Argument
from higl.commands.command import check_checkpoint_minutes, check_suffix, command, group, one_line_errors
from higl.errors import RunFolderError, SettingsError, WrongFolderError


@dataclass(frozen=True, kw_only=True)
class Options:
    """Echo a word."""

    word: Annotated[str, Argument(positional=True, missing="which word?")]
    """The word."""
    times: int = 1
    """How often."""


@command("parrot say", Options)
def say(options: Options) -> int:
    """Print a word."""
    print(*[options.word] * options.times)
    return 0


parrot = group("parrot", "About parrots.", {"say": (say, "echo a word"), "listen": (say, "do the same")})


def test_a_command_takes_its_options(capsys):
    assert parrot(["say", "hello", "--times", "2"]) == 0
    assert capsys.readouterr().out == "hello hello\n"


@pytest.mark.parametrize("words", [["--help"], ["hello", "-h"], ["--unknown", "--help"]])
def test_help_comes_before_everything(words, capsys):
    assert say(words) == 0
    assert capsys.readouterr().out.startswith("usage: higl parrot say WORD [OPTION ...]\n\nEcho a word.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["say"], "higl parrot: which word?\n"),
        (["say", "a", "--tims", "2"], "higl parrot: unknown option --tims; did you mean --times?\n"),
        (["sy"], "higl parrot: unknown command 'sy'; did you mean say? (`higl parrot --help` lists them)\n"),
    ],
)
def test_mistakes_are_one_line_and_exit_with_2(words, message, capsys):
    assert parrot(words) == 2
    assert capsys.readouterr() == ("", message)


def test_a_group_lists_its_commands(capsys):
    assert parrot(["--help"]) == 0
    assert "  say     echo a word\n  listen  do the same\n" in capsys.readouterr().out
    assert parrot([]) == 2


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SettingsError("wrong"), 2, "wrong"),
        (WrongFolderError("not\nthere"), 2, "not there"),
        (RunFolderError("damaged"), 1, "damaged"),
        (FileNotFoundError(2, "No such file or directory", "some/file"), 1, "some/file: no such file or directory"),
        (OSError("no memory"), 1, "no memory"),
    ],
)
def test_expected_errors_are_one_line(error, code, message, capsys):
    def fail(arguments: list[str]) -> int:
        raise error

    assert one_line_errors("test")(fail)([]) == code
    assert capsys.readouterr().err == f"higl test: {message}\n"


@pytest.mark.parametrize("error", [ValueError("a bug"), RuntimeError("a bug"), KeyError("a bug")])
def test_other_errors_keep_their_traceback(error):
    def fail(arguments: list[str]) -> int:
        raise error

    with pytest.raises(type(error), match="a bug"):
        one_line_errors("test")(fail)([])


def test_checks():
    check_suffix(Path("a.PNG"), (".png", ".svg"))
    with pytest.raises(SettingsError, match=r"a.txt: the name must end in .png or .svg"):
        check_suffix(Path("a.txt"), (".png", ".svg"))
    check_checkpoint_minutes(0)
    for minutes in (-1, float("nan")):
        with pytest.raises(SettingsError, match="expected a number 0 or more"):
            check_checkpoint_minutes(minutes)
