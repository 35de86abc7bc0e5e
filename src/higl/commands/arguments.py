"""What the commands share: reading their arguments, showing their help, telling what went wrong in one line."""

from __future__ import annotations

import contextlib
import select
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import tyro

from higl.errors import SettingsError
from higl.settings.flat import Layer
from higl.settings.layers import parse_flags, setting_types

# What the help says of options beside their text: a name for the value, and the default where it is worth telling.
Run = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
Runs = Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN ...", help_behavior_hint="")]
Cores = Annotated[tuple[int, ...], tyro.conf.arg(metavar="CORE ...", help_behavior_hint="(default: all)")]
Device = Annotated[
    Literal["cpu", "gpu"] | None, tyro.conf.arg(metavar="{cpu,gpu}", help_behavior_hint="(default: JAX's choice)")
]
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
Out = Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")]
Options = TypeVar("Options")
Command = Callable[[list[str]], int]

PICTURES = (".png", ".svg", ".pdf")

# What to say when the one thing that a command is about is not named.
_MISSING = {
    "run": "which run? give its folder",
    "task": "which task? `higl tasks` lists them",
    "name": "which sweep? `higl sweep list` lists them",
}


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Return whether the help of a command is wanted."""
    return any(word in ("-h", "--help") for word in arguments)


def show_help(command: str, kind: Any) -> int:
    """Print the help of a command: every option of a dataclass (or function) with its default."""
    with contextlib.suppress(SystemExit):
        tyro.cli(kind, prog=f"higl {command}", args=["--help"])
    return 0


def read_options(arguments: Sequence[str], kind: type[Options], positional: Sequence[str]) -> Options:
    """Return a command's options; positional arguments fill the named fields in order.

    Raises:
        SettingsError: an argument is unknown, missing or of the wrong type.
    """
    words, values = parse_flags(arguments, setting_types(kind))
    if len(words) > len(positional):
        raise SettingsError(f"unexpected argument {words[len(positional)]!r}")
    return make_options(kind, dict(zip(positional, words, strict=False)) | values)


def make_options(kind: type[Options], values: Layer) -> Options:
    """Put values into a dataclass of options."""
    try:
        return msgspec.convert(values, kind, strict=False, dec_hook=_to_path)
    except msgspec.ValidationError as error:
        text = str(error).replace("Object missing required field", "missing").replace("`", "")
        raise SettingsError(_MISSING.get(text.removeprefix("missing "), text)) from None


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file to write whose name says a format that there is not."""
    if path.suffix.lower() not in suffixes:
        raise SettingsError(f"{path}: the name must end in {' or '.join(suffixes)}")


def check_checkpoint_minutes(minutes: float) -> None:
    """Refuse a time between checkpoints that is none."""
    if not minutes >= 0:  # so that NaN is refused too
        raise SettingsError(f"--checkpoint-minutes {minutes:g}: expected a number 0 or more")


def _to_path(kind: type, value: Any) -> Any:
    return Path(value) if kind is Path else kind(value)


def one_line_errors(name: str) -> Callable[[Command], Command]:
    """Turn the errors that a user can mend into one line on standard error: exit 2 if asked wrongly, else 1."""

    def guard(command: Command) -> Command:
        @wraps(command)
        def guarded(arguments: list[str]) -> int:
            try:
                return command(arguments)
            except (ValueError, RuntimeError, OSError) as error:
                if isinstance(error, BrokenPipeError) and _nobody_reads():
                    raise
                if not type(error).__module__.startswith("higl.") and not isinstance(error, OSError):
                    raise
                print(f"higl {name}: {_one_line(error)}", file=sys.stderr)
                return 2 if isinstance(error, ValueError) else 1

        return guarded

    return guard


def _nobody_reads() -> bool:
    """Whether standard output is a pipe whose reader has gone (`higl train --help | head`)."""
    poll = select.poll()
    poll.register(1, select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _one_line(error: Exception) -> str:
    """Return what an error says, of a file that cannot be used its name and why."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror.lower()}"
    return " ".join(str(error).split())
