"""`higl results`: collect results of runs, write the results page and draw figures."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from higl.commands.arguments import Argument, Folder, Switch
from higl.commands.command import PICTURES, check_suffix, command, group
from higl.commands.trust import TrustOptions, allow_module, import_task_module
from higl.errors import SettingsError
from higl.text import counted


@dataclass(frozen=True, kw_only=True)
class AddOptions(TrustOptions):
    """Copy settings, evaluations and facts of runs into results/TASK-REWARD[-tested-in-ENV]/ALGO[-VARIANT]/seed-N."""

    runs: Annotated[
        tuple[Path, ...], Argument(positional=True, metavar="RUN", missing="which runs? give their folders")
    ]
    """Run folders."""
    results: Folder = Path("results")
    """Folder of the results."""
    variant: Annotated[str | None, Argument(metavar="NAME", default="what differs from the preset")] = None
    """Name of the variant."""
    partial: Switch = False
    """Also add runs that have not finished."""
    test: int = 0
    """Also measure each policy over this many test episodes, as `higl eval` does, and keep the summary."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Write the results page, and the short table of the README."""

    results: Folder = Path("results")
    """Folder of the results."""
    page: Annotated[Path | None, Argument(metavar="FILE", default="docs/results.md of higl's repository")] = None
    """Page to write."""
    summary: Annotated[Path | None, Argument(metavar="FILE", default="README.md, if no page is given")] = None
    """Page with the marks between which the short table stands."""
    check: Switch = False
    """Write nothing; fail if the page is not up to date."""


@dataclass(frozen=True, kw_only=True)
class FigureOptions:
    """Draw figures of the paper from results/, each with all seeds that are there.

    Without a name: the figures of the documentation that have runs, into the folder of pictures.
    """

    names: Annotated[tuple[str, ...], Argument(positional=True, metavar="NAME", default="those of the docs")] = ()
    """Sweeps to draw side by side, such as `fig4a fig4b fig4c`; `higl sweep list` lists them."""
    results: Folder = Path("results")
    """Folder of the results."""
    figure: Annotated[Path | None, Argument(alias="-o", metavar="FILE", default="NAME.png")] = None
    """File to write: png, svg or pdf. Only with a name."""
    images: Folder = Path("docs/images")
    """Folder of the documentation's pictures. Only without a name."""
    check: Switch = False
    """Write nothing; fail if a picture of the documentation is not up to date."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Name the runs in results/ whose settings differ from the preset of today in more than their names say.

    Each is printed with the settings, `name = stored -> preset`. The exit code is 1 if there are any.
    """

    results: Folder = Path("results")
    """Folder of the results."""


@command("results add", AddOptions)
def add(options: AddOptions) -> int:
    """Add runs to the results."""
    from higl.sweep.results import add_run, add_test

    check_test(options.test)
    for run in options.runs:
        if options.test:
            allow_task(run, trust=options.trust)
        place = add_run(run, options.results, variant=options.variant, partial=options.partial)
        if options.test:
            add_test(place, tested(run, options.test))
        print(place)
    return 0


def check_test(episodes: int) -> None:
    """Reject a negative number of test episodes."""
    if episodes < 0:
        raise SettingsError(f"--test {episodes}: expected a number 0 or more")


def allow_task(run: Path, *, trust: bool) -> None:
    """Import the module of a run's task if the user trusts it."""
    from higl.run.process import prepare_process
    from higl.run.reading import read_config, tested_in

    prepare_process(())
    task = tested_in(run, read_config(run))
    allow_module(task, run, trust=trust)
    import_task_module(task)


def tested(run: Path, episodes: int) -> dict[str, Any]:
    """Return the summary of a run's policy over test episodes."""
    from higl.commands.evaluate import TEST_SEED
    from higl.run.measure import measure_policy
    from higl.run.reading import policy_path, read_config, tested_in

    task = tested_in(run, read_config(run))
    return {"seed": TEST_SEED} | measure_policy(policy_path(run), TEST_SEED, episodes, task).summary()


@command("results table", TableOptions)
def table(options: TableOptions) -> int:
    """Write or check the page and the short table."""
    from higl.sweep.results_page import COMMAND, make_page
    from higl.sweep.summary_table import make_table, with_table

    _check_folder(options.results)
    file = options.page or Path("docs/results.md")
    if options.page is None and not file.is_file():
        raise SettingsError(f"{file} is not here: name the page to write, --page FILE")
    texts = {file: make_page(options.results)}
    summary = options.summary or (Path("README.md") if options.page is None else None)
    if summary is not None and (options.summary or summary.is_file()):
        texts[summary] = with_table(_read(summary), make_table(options.results))
    outdated = {path: text for path, text in texts.items() if _read(path) != text}
    for path in texts:
        if not options.check:
            _write(path, outdated.get(path))
        elif path in outdated:
            print(f"higl results: {path} is not up to date: `{COMMAND}` writes it", file=sys.stderr)
    return 1 if options.check and outdated else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _write(path: Path, text: str | None) -> None:
    """Write a page if there is a new text for it, and say so."""
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{path}: {'already up to date' if text is None else 'written'}")


@command("results figure", FigureOptions)
def figure(options: FigureOptions) -> int:
    """Draw the figures of some sweeps, or draw or check those of the documentation."""
    from higl.sweep.results_figure import documented, entries_of, is_current, read_folders, save_entries

    _check_folder(options.results)
    folders = read_folders(options.results)
    if options.names:
        out = options.figure or Path(f"{options.names[0]}.png")
        check_suffix(out, PICTURES)
        print(f"{out}: {counted(save_entries(folders, entries_of(options.names), out), 'run')}")
        return 0
    if options.figure is not None:
        raise SettingsError(f"-o {options.figure}: which figure? `higl sweep list` lists them")
    outdated = []
    for name, entries in documented(folders).items():
        path = options.images / f"{name}.png"
        if is_current(folders, entries, path):
            continue
        outdated.append(path)
        if options.check:
            print(f"higl results: {path} is not up to date: `higl results figure` draws it", file=sys.stderr)
        else:
            print(f"{path}: {counted(save_entries(folders, entries, path), 'run')}")
    return 1 if options.check and outdated else 0


def _check_folder(results: Path) -> None:
    if not results.is_dir():  # else it would seem that there are no results
        raise SettingsError(f"there is no folder {results}")


@command("results check", CheckOptions)
def check(options: CheckOptions) -> int:
    """Name the results whose settings are no longer those of their preset."""
    from higl.run.naming import unnamed_changes
    from higl.sweep.results import read_results

    _check_folder(options.results)
    found = read_results(options.results)
    changed = [(result, unnamed_changes(result.config, result.variant)) for result in found]
    changed = [(result, changes) for result, changes in changed if changes]
    for result, changes in changed:
        print(f"{result.path}: {', '.join(changes)}")
    print(f"{len(changed)} of {counted(len(found), 'run')} differ from the preset in more than their names say")
    return 1 if changed else 0


results = group(
    "results",
    "Collect results of runs in a repository, write the results page, draw figures.",
    {
        "add": (add, "copy settings, evaluations and facts of runs into results/"),
        "check": (check, "name runs whose settings differ from the preset of today"),
        "figure": (figure, "draw the paper's figures from results/, or check that they are up to date"),
        "table": (table, "write docs/results.md and the README's table from results/, or check them"),
    },
)
