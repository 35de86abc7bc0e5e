"""What the commands share: help, one-line errors, groups of commands, checks of common options."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

from higl.commands.arguments import Options, options_help, read_options
from higl.errors import SettingsError
from higl.settings.layers import SEED_LIMIT, SEED_RANGE
from higl.text import did_you_mean

if TYPE_CHECKING:
    from higl.run.reading import Run

Command = Callable[[list[str]], int]

PICTURES = (".png", ".svg", ".pdf")


def command(name: str, kind: type[Options]) -> Callable[[Callable[[Options], int]], Command]:
    """Turn a function of options into a command: `higl NAME --help` prints its help, errors are one line."""

    def make(action: Callable[[Options], int]) -> Command:
        @one_line_errors(name.partition(" ")[0])
        @wraps(action)
        def run(arguments: list[str]) -> int:
            if asks_for_help(arguments):
                print(options_help(name, kind), end="")
                return 0
            return action(read_options(name, arguments, kind))

        return run

    return make


def group(name: str, about: str, commands: Mapping[str, tuple[Command, str]]) -> Command:
    """Return a command that calls one of several: `higl NAME COMMAND ...`.

    Args:
        name: Name of the group.
        about: What the group is about, in a line.
        commands: The commands of the group, each with a line of help.
    """

    @one_line_errors(name)
    def run(arguments: list[str]) -> int:
        if not arguments or arguments[0] in ("-h", "--help"):
            print(_usage(name, about, commands))
            return 0 if arguments else 2
        word = arguments[0]
        if word not in commands:
            raise SettingsError(
                f"unknown command {word!r}{did_you_mean(word, commands)} (`higl {name} --help` lists them)"
            )
        return commands[word][0](arguments[1:])

    return run


def _usage(name: str, about: str, commands: Mapping[str, tuple[Command, str]]) -> str:
    width = max(map(len, commands))
    lines = [f"usage: higl {name} COMMAND ...", "", about, ""]
    lines += [f"  {word:{width}}  {line}" for word, (_, line) in commands.items()]
    return "\n".join([*lines, "", f"`higl {name} COMMAND --help` describes a command."])


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Return whether the help of a command is wanted."""
    return any(word in ("-h", "--help") for word in arguments)


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Reject a file to write whose name ends in an unknown format."""
    if path.suffix.lower() not in suffixes:
        raise SettingsError(f"{path}: the name must end in {' or '.join(suffixes)}")


def check_checkpoint_minutes(minutes: float) -> None:
    """Reject a negative time between checkpoints, and NaN."""
    if not minutes >= 0:
        raise SettingsError(f"--checkpoint-minutes {minutes:g}: expected a number 0 or more")


def check_seed(seed: int) -> None:
    """Reject a seed that NumPy or Gymnasium would not accept."""
    if not 0 <= seed < SEED_LIMIT:
        raise SettingsError(f"--seed {seed}: expected a number {SEED_RANGE}")


def warn(notices: Sequence[str]) -> None:
    """Print notices to standard error."""
    for notice in notices:
        print(f"notice: {notice}", file=sys.stderr)


def agrees(question: str, *, default: bool) -> bool:
    """Ask a question in a terminal and return whether the answer is yes; elsewhere return False."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    answer = input(f"{question} [{'Y/n' if default else 'y/N'}] ").strip().lower()
    return default if not answer else answer in ("y", "yes")


def only_run(path: Path, *, notices: bool = True) -> Run:
    """Return the run in a folder, and print its notices if asked to.

    Raises:
        NoRunsError: there is none, or more than one.
    """
    from higl.errors import NoRunsError
    from higl.run.reading import find_runs

    runs = find_runs([path])
    if len(runs) > 1:
        raise NoRunsError(f"{path} holds {len(runs)} runs, and this takes one: {runs[0].path}, ...")
    if notices:
        warn(runs[0].notices)
    return runs[0]


def one_line_errors(name: str) -> Callable[[Command], Command]:
    """Print the package's own errors as one line on standard error: exit 2 for a usage error, else 1."""

    def guard(run: Command) -> Command:
        @wraps(run)
        def guarded(arguments: list[str]) -> int:
            try:
                return run(arguments)
            except (ValueError, RuntimeError, OSError) as error:
                if isinstance(error, BrokenPipeError) and _reader_is_gone():
                    raise
                if not type(error).__module__.startswith("higl.") and not isinstance(error, OSError):
                    raise
                print(f"higl {name}: {_one_line(error)}", file=sys.stderr)
                return 2 if isinstance(error, ValueError) else 1

        return guarded

    return guard


def _reader_is_gone() -> bool:
    """Whether standard output is a pipe that nobody reads any more (`higl train --help | head`)."""
    poll = select.poll()
    poll.register(1, select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _one_line(error: Exception) -> str:
    """Return the message of an error; of a file that cannot be used, its name and the reason."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror.lower()}"
    return " ".join(str(error).split())
