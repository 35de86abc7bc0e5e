"""Arguments from dataclasses: the forms of flags, what is returned, one line for every mistake, the help."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from higl.commands.arguments import Argument, ArgumentParser, Out, Run, Switch, options_help, read_options
from higl.errors import SettingsError
from higl.settings.config import Config
from higl.settings.flat import Layer
from higl.settings.layers import build_config, setting_types


@dataclass(frozen=True, kw_only=True)
class Inner:
    """The inner part. It has a group of its own."""

    batch_size: int = 2_000
    """Items in a batch."""
    sizes: tuple[int, ...] = (8, 4)
    """Sizes of
    the layers."""
    relabel: bool = False
    """Relabel 95% of them."""


@dataclass(frozen=True, kw_only=True)
class Outer:
    """All kinds of fields."""

    run: Run
    """Folder of the run."""
    rate: float = 0.5
    """A rate."""
    algo: Literal["higl", "hrac"] | None = None
    """An algorithm: `higl eval ant-maze-u --pretrained`."""
    out: Out = Path("out.png")
    """A file."""
    quiet: Switch = False
    """Say nothing."""
    ray: Annotated[str | None, Argument(metavar="ADDRESS", bare="auto")] = None
    """An address, if any."""
    inner: Inner = field(default_factory=Inner)


@dataclass(frozen=True, kw_only=True)
class Several:
    """Several words."""

    runs: Annotated[tuple[Path, ...], Argument(positional=True, missing="give some runs")]
    """The runs."""
    show: tuple[Literal["a", "b"], ...] = ("a",)
    """What to show."""


def parse(*words: str, kind: type = Outer) -> Layer:
    parser = ArgumentParser("test", "")
    parser.add(kind)
    return parser.parse(words)


def message(*words: str, kind: type = Outer) -> str:
    with pytest.raises(SettingsError) as caught:
        parse(*words, kind=kind)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", {}),
        ("runs/a", {"run": Path("runs/a")}),
        ("--rate 2 runs/a --quiet", {"run": Path("runs/a"), "rate": 2.0, "quiet": True}),
        ("--quiet runs/a", {"run": Path("runs/a"), "quiet": True}),
        ("--inner.batch-size 3", {"inner.batch_size": 3}),
        ("--inner.batch_size=3", {"inner.batch_size": 3}),
        ("--inner.batch-size 1e6", {"inner.batch_size": 1_000_000}),
        ("--inner.batch-size 1_000_000", {"inner.batch_size": 1_000_000}),
        ("--inner.batch-size -1", {"inner.batch_size": -1}),
        ("--inner.batch-size 1 --inner.batch-size 2", {"inner.batch_size": 2}),
        ("--inner.sizes 64 32 16", {"inner.sizes": (64, 32, 16)}),
        ("--inner.sizes=64", {"inner.sizes": (64,)}),
        ("--inner.sizes --quiet", {"inner.sizes": (), "quiet": True}),
        ("--inner.relabel runs/a", {"inner.relabel": True, "run": Path("runs/a")}),
        ("--inner.no-relabel", {"inner.relabel": False}),
        ("--inner.no_relabel --inner.relabel", {"inner.relabel": True}),
        ("--algo hrac", {"algo": "hrac"}),
        ("-o a_b.svg", {"out": Path("a_b.svg")}),
        ("--out=a_b=c.svg", {"out": Path("a_b=c.svg")}),
        ("runs/a --ray", {"run": Path("runs/a"), "ray": "auto"}),
        ("--ray host:1 runs/a", {"run": Path("runs/a"), "ray": "host:1"}),
    ],
)
def test_only_what_was_given_comes_back(words, expected):
    found = parse(*words.split())
    assert found == expected
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in expected.items()
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--inner.batch-siz 4", "unknown option --inner.batch-siz; did you mean --inner.batch-size?"),
        ("--sizes 4", "unknown option --sizes; did you mean --inner.sizes?"),
        ("--zzzz", "unknown option --zzzz"),
        ("--rat=4", "unknown option --rat; did you mean --rate?"),
        ("-q", "unknown option -q; did you mean --quiet?"),
        ("-z", "unknown option -z"),
        ("-rate 3", "unknown option -rate; did you mean --rate?"),
        ("--no-quiet", "unknown option --no-quiet; did you mean --quiet?"),
        ("--inner 3", "--inner is a group of settings: name one of them, such as --inner.batch-size"),
        ("--inner.batch_size many", "--inner.batch-size 'many': expected a whole number"),
        ("--inner.batch-size 2.5", "--inner.batch-size '2.5': expected a whole number"),
        ("--inner.batch-size inf", "--inner.batch-size 'inf': expected a whole number"),
        ("--inner.batch-size", "--inner.batch-size: expected a whole number"),
        ("--inner.batch-size --quiet", "--inner.batch-size: expected a whole number"),
        ("--inner.sizes 8 x", "--inner.sizes 'x': expected a whole number"),
        ("--rate fast", "--rate 'fast': expected a number"),
        ("--algo hrax", "--algo 'hrax': expected one of higl, hrac; did you mean hrac?"),
        ("--out", "--out: expected a path"),
        ("--inner.relabel=false", "--inner.relabel or --inner.no-relabel: expected no value"),
        ("--quiet=true", "--quiet: expected no value"),
        ("runs/a runs/b", "unexpected argument 'runs/b'"),
        ("runs/a runs/b --rat 1", "unknown option --rat; did you mean --rate?"),
    ],
)
def test_mistakes(words, told):
    assert message(*words.split()) == told


def test_options():
    assert read_options("test", ["a", "--rate", "1"], Outer) == Outer(run=Path("a"), rate=1.0)
    with pytest.raises(SettingsError, match=r"^which run\? give its folder$"):
        read_options("test", ["--rate", "1"], Outer)


def test_several_words():
    words = ["x", "--show", "a", "b", "--", "y"]
    assert parse(*words, kind=Several) == {"runs": (Path("x"), Path("y")), "show": ("a", "b")}
    with pytest.raises(SettingsError, match="give some runs"):
        read_options("test", [], Several)


# --- Settings -------------------------------------------------------------------------------------------------------

KNOWN = setting_types(Config)
VALUES = {
    int: st.integers(),
    float: st.floats(allow_nan=False, min_value=0),
    str: st.from_regex(r"[a-z][a-z0-9/-]*", fullmatch=True),
    bool: st.booleans(),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    if kind in VALUES:
        return VALUES[kind]
    if getattr(kind, "__origin__", None) is tuple:
        return st.lists(VALUES[kind.__args__[0]], max_size=3).map(tuple)
    return st.sampled_from(kind.__args__)


def words_of(name: str, value: Any, underscores: bool) -> list[str]:
    flag = name if underscores else name.replace("_", "-")
    if isinstance(value, bool):
        part, dot, last = flag.rpartition(".")
        return [f"--{flag}" if value else f"--{part}{dot}no-{last}"]
    if isinstance(value, tuple):
        return [f"--{flag}", *map(str, value)]
    return [f"--{flag}", str(value)] if underscores else [f"--{flag}={value}"]


LAYERS = st.fixed_dictionaries({}, optional={name: values_of(kind) for name, kind in KNOWN.items()})


@given(LAYERS, st.booleans())
def test_every_setting_comes_back_as_it_was_given(layer, underscores):
    words = [word for name, value in layer.items() for word in words_of(name, value, underscores)]
    assert parse(*words, kind=Config) == layer


# Anything at all that a person may type.
TEXTS = st.one_of(
    st.text(max_size=8),
    st.integers(-10, 10**7).map(str),
    st.floats().map(str),
    st.sampled_from(["higl", "true", "1e400", "", "-", "--", "0x10", "1e6", "-0.0", "--=", "-o"]),
)


@given(st.lists(st.tuples(st.sampled_from(sorted(KNOWN)), st.lists(TEXTS, max_size=3)), max_size=4))
@example([("hidden", ["1", "--", "2"])])
def test_any_flags_give_a_configuration_or_one_line(changes):
    words = [word for name, texts in changes for word in (f"--{name}", *texts)]
    config, problem = result_or_problem(words)
    if config is None:
        assert "\n" not in problem
    else:
        assert config.steps > 0
        assert 0 <= config.low.discount <= 1
        assert math.isfinite(config.landmarks.cutoff)


def result_or_problem(words: list[str]) -> tuple[Config | None, str]:
    try:
        return build_config({"task": "ant-maze-u"} | parse(*words, kind=Config)), ""
    except SettingsError as error:
        return None, str(error)


# --- Help -----------------------------------------------------------------------------------------------------------


def helps(monkeypatch, columns: int) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    return options_help("test", Outer)


def test_help_shows_every_field_with_its_text_and_default(monkeypatch):
    flat = " ".join(helps(monkeypatch, 100).split())
    for expected in (
        "usage: higl test RUN [OPTION ...] All kinds of fields.",
        "RUN Folder of the run.",
        "-h, --help Show this help.",
        "--rate FLOAT A rate. (default: 0.5)",
        "--algo {higl,hrac} An algorithm",
        "--out FILE A file. (default: out.png)",  # Python 3.13: "-o, --out FILE", before: "-o FILE, --out FILE"
        "--quiet Say nothing.",
        "--ray [ADDRESS] An address, if any.",
        "inner: The inner part. It has a group of its own.",
        "--inner.batch-size INT Items in a batch. (default: 2_000)",
        "--inner.sizes [INT ...] Sizes of the layers. (default: 8 4)",
        "--inner.relabel, --inner.no-relabel Relabel 95% of them. (default: off)",
    ):
        assert expected in flat


@pytest.mark.parametrize("columns", [1, 60, 80, 120, 300])
def test_help_fits_the_terminal_and_breaks_no_command(monkeypatch, columns):
    text = helps(monkeypatch, columns)
    assert max(map(len, text.splitlines())) <= max(60, min(columns, 120))
    assert "`higl eval ant-maze-u --pretrained`" in text
    assert "(default: 2_000)" in text
    assert text.isascii()


def test_help_shows_given_defaults():
    parser = ArgumentParser("test", "About.")
    parser.add(Inner, Inner(batch_size=7, sizes=(), relabel=True), title="settings", positional=["batch_size"])
    flat = " ".join(parser.help().split())
    assert "usage: higl test BATCH_SIZE [OPTION ...] About." in flat
    assert "BATCH_SIZE Items in a batch. -" not in flat
    assert "Sizes of the layers. (default: none)" in flat
    assert "Relabel 95% of them. (default: on)" in flat
