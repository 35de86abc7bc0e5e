"""`higl results`: keep the results of runs, and make the page of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from higl.commands.arguments import Runs, Switch, asks_for_help, make_options, one_line_errors, show_help
from higl.errors import SettingsError
from higl.settings.layers import nearest, parse_flags, setting_types

Results = Annotated[Path, tyro.conf.arg(metavar="DIR")]


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """Copy settings, evaluations and facts of runs into results/TASK-REWARD/ALGO[-VARIANT]/seed-N."""

    runs: Runs
    """Run folders."""
    results: Results = Path("results")
    """Folder of the results."""
    variant: Annotated[
        str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="(default: what differs from the preset)")
    ] = None
    """Name of the variant."""
    partial: Switch = False
    """Also take runs that have not finished."""
    test: int = 0
    """Measure each policy over so many test episodes, as `higl eval` does, and keep what came out."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Write the page of all results."""

    results: Results = Path("results")
    """Folder of the results."""
    page: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("docs/results.md")
    """Page to write."""
    check: Switch = False
    """Write nothing; fail if the page is not up to date."""


@one_line_errors("results")
def results(arguments: list[str]) -> int:
    """Call one of the commands below `higl results`."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE)
        return 0 if arguments else 2
    word, rest = arguments[0], arguments[1:]
    if word not in _COMMANDS:
        raise SettingsError(f"unknown command {word!r}{nearest(word, _COMMANDS)} (`higl results --help` lists them)")
    action, kind = _COMMANDS[word]
    if asks_for_help(rest):
        return show_help(f"results {word}", kind)
    words, values = parse_flags(rest, setting_types(kind))
    if words and kind is TableOptions:
        raise SettingsError(f"unexpected argument {words[0]!r}")
    if kind is AddOptions:
        if not words:
            raise SettingsError("which runs? give their folders")
        values["runs"] = tuple(Path(each) for each in words)
    return action(make_options(kind, values))


def add(options: AddOptions) -> int:
    """Add runs to the results."""
    from higl.sweep.results import add_run, add_test

    if options.test < 0:
        raise SettingsError(f"--test {options.test}: expected a number 0 or more")
    for run in options.runs:
        place = add_run(run, options.results, variant=options.variant, partial=options.partial)
        if options.test:
            add_test(place, _tested(run, options.test))
        print(place)
    return 0


def _tested(run: Path, episodes: int) -> dict[str, Any]:
    """Return what a run's policy comes to over test episodes."""
    from higl.commands.evaluate import TEST_SEED, measure, policy_path, summarise
    from higl.run.process import prepare_process

    prepare_process(())
    return {"seed": TEST_SEED} | summarise(measure(policy_path(run), TEST_SEED, episodes))


def table(options: TableOptions) -> int:
    """Write or check the page."""
    from higl.sweep.page import COMMAND, make_page, write_page

    if not options.results.is_dir():  # or a page would be written that says there are no results
        raise SettingsError(f"there is no folder {options.results}")
    if not options.check:
        print(f"{options.page}: {'written' if write_page(options.results, options.page) else 'up to date already'}")
        return 0
    page = options.page.read_text(encoding="utf-8") if options.page.is_file() else None
    if page != make_page(options.results):
        print(f"higl results: {options.page} is not up to date: `{COMMAND}` writes it again", file=sys.stderr)
        return 1
    return 0


_COMMANDS: dict[str, tuple[Callable[[Any], int], type]] = {"add": (add, AddOptions), "table": (table, TableOptions)}

_USAGE = """usage: higl results COMMAND ...

  add RUN ...  copy settings, evaluations and facts of runs into results/
  table        write docs/results.md from results/ (--check: only see whether it is up to date)

`higl results COMMAND --help` tells more."""
