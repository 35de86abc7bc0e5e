"""Command-line arguments from dataclasses: one argparse option for each field, documented by the field's docstring.

Nested dataclasses give dotted flags: `--landmarks.coverage 40`, `--landmarks.coverage=40`, `--low.angles 3 4`,
`--high.relabel`, `--high.no-relabel`. Dashes and underscores are the same.
"""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from higl.errors import SettingsError
from higl.settings.field_texts import field_texts
from higl.settings.flat import Layer
from higl.settings.layers import check_names, describe
from higl.text import did_you_mean

Options = TypeVar("Options")

# Wider lines are hard to read; narrower ones leave no room for the texts.
_NARROWEST, _WIDEST = 60, 120


@dataclass(frozen=True, kw_only=True)
class Argument:
    """How a field looks on the command line, where its type does not say it."""

    metavar: str | None = None
    """Placeholder of the value in the help."""
    default: str | None = None
    """Text that the help shows as the default; empty: none."""
    alias: str = ""
    """Short form of the flag."""
    flag: str = ""
    """The flag, if it is not the name of the field."""
    positional: bool = False
    """A word of its own, without a flag."""
    switch: bool = False
    """A truth value that is off by default and can only be switched on."""
    bare: str | None = None
    """Value of the flag if it is given without one; None: it needs one."""
    missing: str = ""
    """What to say when the argument is required and not given."""


_WHICH_RUN = "which run? give its folder"
Run = Annotated[Path, Argument(positional=True, metavar="RUN", missing=_WHICH_RUN)]
Runs = Annotated[tuple[Path, ...], Argument(positional=True, metavar="RUN", missing=_WHICH_RUN)]
Cores = Annotated[tuple[int, ...], Argument(metavar="CORE", default="all")]
Device = Annotated[Literal["cpu", "gpu"] | None, Argument(default="JAX's choice")]
Switch = Annotated[bool, Argument(switch=True, default="")]
Out = Annotated[Path, Argument(alias="-o", metavar="FILE")]
TestEnv = Annotated[str | None, Argument(metavar="NAME", default="")]
Folder = Annotated[Path, Argument(metavar="DIR")]


class ArgumentParser:
    """Parser of a command's arguments. It returns only what was given, so that settings can be layered."""

    def __init__(self, command: str, description: str) -> None:
        """Make a parser without any arguments.

        Args:
            command: The words after `higl`.
            description: What the command does, in paragraphs.
        """
        self._width = max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST)) - 2
        self._parser = argparse.ArgumentParser(
            prog=f"higl {command}",
            description=self._wrapped(description),
            formatter_class=self._formatter,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
            exit_on_error=False,
            add_help=False,
        )
        self._parser.add_argument("-h", "--help", action="help", help="Show this help.")
        self._usage = [self._parser.prog]
        self._words: dict[str, Callable[[str], Any]] = {}  # what converts the words without a flag
        self._types: dict[str, Any] = {}  # of every flag, for messages
        self._instead: Mapping[str, str] = {}  # texts for the help instead of defaults

    def add(
        self,
        kind: type[Any],
        defaults: object = None,
        *,
        title: str = "",
        positional: Sequence[str] = (),
        instead: Mapping[str, str] | None = None,
    ) -> None:
        """Add an argument for each field of a dataclass.

        Args:
            kind: The dataclass.
            defaults: An instance with the defaults that the help shows, if they are not those of the dataclass.
            instead: Texts that the help shows as defaults instead, by dotted name.
            title: Title of the fields' group in the help.
            positional: Fields that are required words without a flag, beside those that say so themselves.
        """
        self._instead = instead or {}
        self._add_fields(kind, defaults, title, "", positional)
        self._parser.usage = " ".join([*self._usage, "[OPTION ...]"])

    def _add_fields(
        self, kind: type[Any], defaults: object, title: str, prefix: str, positional: Sequence[str]
    ) -> None:
        group = self._group(kind, title) if title else self._parser
        hints, texts, nested = get_type_hints(kind, include_extras=True), field_texts(kind), []
        for field in fields(kind):
            hint = hints[field.name]
            default = _default(field) if defaults is None else getattr(defaults, field.name)
            default = MISSING if field.name in positional else default
            if is_dataclass(hint):
                nested.append((hint, default, field.name, f"{prefix}{field.name}.", ()))
                continue
            argument = _argument(hint, positional=field.name in positional)
            text = _help(texts.get(field.name, ""), default, argument, self._instead.get(f"{prefix}{field.name}"))
            if argument.positional:
                self._add_word(field.name, hint, argument, text, required=default is MISSING)
            else:
                self._add_flag(group, prefix + field.name, hint, argument, text)
        for part in nested:
            self._add_fields(*part)

    def _group(self, kind: type, title: str) -> Any:
        first = (kind.__doc__ or "").partition("\n\n")[0]
        return self._parser.add_argument_group(title, self._wrapped(first, indent="  "))

    def _add_word(self, name: str, hint: Any, argument: Argument, text: str, *, required: bool) -> None:
        kind = _plain(hint)
        many = get_origin(kind) is tuple
        metavar = argument.metavar or name.upper()
        # argparse neither requires nor converts it: a misspelt flag is reported first, and argparse would convert its
        # own mark of an absent word.
        self._parser.add_argument(name, nargs="*" if many else "?", metavar=metavar, help=text)
        self._words[name] = _converter(kind)
        shown = f"{metavar} [{metavar} ...]" if many else metavar
        self._usage.append(shown if required else f"[{shown}]")

    def _add_flag(self, group: Any, name: str, hint: Any, argument: Argument, text: str) -> None:
        flag, kind = argument.flag or _flag(name), _plain(hint)
        self._types[flag] = kind
        names = [argument.alias, flag] if argument.alias else [flag]
        if argument.switch:
            group.add_argument(*names, dest=name, action="store_true", default=argparse.SUPPRESS, help=text)
            return
        if kind is bool:
            part, dot, last = flag.removeprefix("--").rpartition(".")
            group.add_argument(*names, f"--{part}{dot}no-{last}", dest=name, action=_OnOff, help=text)
            return
        many = get_origin(kind) is tuple
        group.add_argument(
            *names,
            dest=name,
            type=_converter(kind),
            nargs="*" if many else None if argument.bare is None else "?",
            const=argument.bare,
            metavar=argument.metavar or _metavar(get_args(kind)[0] if many else kind),
            help=text,
        )

    def parse(self, arguments: Sequence[str]) -> Layer:
        """Return the values that were given, by the names of their fields.

        Raises:
            SettingsError: an argument is unknown (with the nearest known one) or has the wrong type (with the right).
        """
        try:
            values, rest = self._parser.parse_known_intermixed_args([_dashed(word) for word in arguments])
        except argparse.ArgumentError as error:
            raise SettingsError(self._explain(error)) from None
        for word in rest:
            if word.startswith("-"):
                self._reject(word)
        if rest:
            raise SettingsError(f"unexpected argument {rest[0]!r}")
        return {name: self._value(name, value) for name, value in vars(values).items()}

    def _value(self, name: str, value: Any) -> Any:
        convert = self._words.get(name, lambda value: value)
        return tuple(map(convert, value)) if isinstance(value, list) else convert(value)

    def _reject(self, word: str) -> None:
        """Reject an unknown flag, and name the nearest known one."""
        known = [flag.removeprefix("--") for flag in self._types]
        if not word.startswith("--"):
            longer = [name for name in known if name.startswith(word[1:])]  # `-o` is most likely `--out`
            raise SettingsError(f"unknown option {word}{did_you_mean((longer or [word[1:]])[0], known, '--')}")
        check_names([word[2:].partition("=")[0]], known, flag="--")

    def _explain(self, error: argparse.ArgumentError) -> str:
        names = (error.argument_name or "").split("/")
        flag = next((name for name in names if name in self._types), names[0])
        if error.message.startswith(_WRONG):
            return f"{flag} {error.message.removeprefix(_WRONG)}"
        if self._types.get(flag) is bool:
            return f"{' or '.join(name for name in names if name.startswith('--'))}: expected no value"
        return f"{flag}: expected {describe(self._types[flag])}"

    def help(self) -> str:
        """Return the help: usage, description, and every argument with its text and default."""
        return self._parser.format_help().translate(_BREAKING)

    def _formatter(self, prog: str) -> argparse.HelpFormatter:
        return argparse.RawDescriptionHelpFormatter(prog, max_help_position=self._width // 3, width=self._width)

    def _wrapped(self, text: str, indent: str = "") -> str:
        paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
        return "\n\n".join(
            textwrap.fill(part, self._width - len(indent), break_on_hyphens=False) for part in paragraphs
        )


def read_options(command: str, arguments: Sequence[str], kind: type[Options]) -> Options:
    """Return the options of a command that takes one dataclass.

    Raises:
        SettingsError: an argument is unknown, missing or of the wrong type.
    """
    parser = ArgumentParser(command, "")
    parser.add(kind)
    return make_options(kind, parser.parse(arguments))


def make_options(kind: type[Options], values: Layer) -> Options:
    """Put parsed values into a dataclass of options.

    Raises:
        SettingsError: a required one is missing.
    """
    for field in fields(kind):  # ty: ignore[invalid-argument-type]
        if field.name not in values and _default(field) is MISSING:
            argument = _argument(get_type_hints(kind, include_extras=True)[field.name])
            raise SettingsError(argument.missing or f"missing {field.name}")
    return kind(**values)


def options_help(command: str, kind: type) -> str:
    """Return the help of a command that takes one dataclass, whose docstring describes it."""
    parser = ArgumentParser(command, kind.__doc__ or "")
    parser.add(kind)
    return parser.help()


class _OnOff(argparse.Action):
    """A truth value: `--high.relabel` switches it on, `--high.no-relabel` off."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        setattr(namespace, self.dest, option_string != self.option_strings[-1])


# --- Types ----------------------------------------------------------------------------------------------------------

# Begins the messages of our converters, to tell them from argparse's own.
_WRONG = "wrong value: "


def _plain(hint: Any) -> Any:
    """Return a type without its annotation and without None."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(option for option in get_args(hint) if option is not type(None))
    return hint


def _argument(hint: Any, *, positional: bool = False) -> Argument:
    """Return how a field looks on the command line."""
    if get_origin(hint) is Annotated:
        return next(extra for extra in get_args(hint)[1:] if isinstance(extra, Argument))
    return Argument(positional=positional)


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _converter(hint: Any) -> Callable[[str], Any]:
    """Return a function from one word to a value of a type (of a tuple: of its entries)."""
    kind = _plain(hint)
    kind = get_args(kind)[0] if get_origin(kind) is tuple else kind

    def convert(text: str) -> Any:
        try:
            if get_origin(kind) is Literal:
                return get_args(kind)[get_args(kind).index(text)]
            return _integer(text) if kind is int else kind(text)
        except (ValueError, OverflowError):
            hint = did_you_mean(text, get_args(kind)) if get_origin(kind) is Literal else ""
            raise argparse.ArgumentTypeError(f"{_WRONG}{text!r}: expected {describe(kind)}{hint}") from None

    return convert


def _integer(text: str) -> int:
    """Return a whole number, which may be written 1_000_000 or 1e6."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if number != int(number):
            raise
        return int(number)


# --- Texts ----------------------------------------------------------------------------------------------------------

# Where the help must not break a line, spaces and hyphens are other characters until it is done.
_UNBROKEN = str.maketrans(" -", "\u00a0\u2011")
_BREAKING = str.maketrans("\u00a0\u2011", " -")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _dashed(word: str) -> str:
    """Return a word with a flag's underscores as dashes."""
    name, equals, value = word.partition("=")
    return (name.replace("_", "-") if name.startswith("--") else name) + equals + value


def _metavar(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "{" + ",".join(get_args(kind)) + "}"
    return {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}[kind]


def _help(text: str, default: Any, argument: Argument, instead: str | None) -> str:
    shown = argument.default if instead is None else instead
    if shown is None:
        shown = "" if default is None or default is MISSING else _shown(default)
    text = re.sub("`.*?`", lambda match: match[0].translate(_UNBROKEN), text)
    suffix = f"(default: {shown})".translate(_UNBROKEN) if shown else ""
    return f"{text} {suffix}".strip(" ").replace("%", "%%")


def _shown(value: Any) -> str:
    """Return a default as it would be typed."""
    if isinstance(value, tuple):
        return " ".join(map(_shown, value)) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:_}" if isinstance(value, int) else str(value)
