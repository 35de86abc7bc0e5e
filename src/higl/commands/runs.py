"""`higl runs`: a table of runs. Imports neither NumPy nor JAX."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from higl.commands.arguments import Argument, Switch
from higl.commands.command import command
from higl.errors import WrongFolderError
from higl.run.progress import STATUS_STYLES
from higl.run.reading import RunState, is_run, run_folders, run_state

_NUMBERS = ("step", "done", "success")
# From the fullest table to the narrowest. Default folder names hold what the narrow ones leave out.
_TABLES = (
    ("run", "state", "task", "tested in", "algo", "reward", "seed", *_NUMBERS),
    ("run", "state", "task", "tested in", *_NUMBERS),
    ("run", "state", *_NUMBERS),
)
_ANY_WIDTH = 10_000


@dataclass(frozen=True, kw_only=True)
class RunsOptions:
    """List the runs below a folder."""

    folder: Annotated[Path, Argument(positional=True, metavar="DIR")] = Path("runs")
    """Folder to search."""
    json: Switch = False
    """Print one line of JSON per run."""


@command("runs", RunsOptions)
def runs(options: RunsOptions) -> int:
    """Print the runs below a folder."""
    if not options.folder.is_dir():
        raise WrongFolderError(f"there is no folder {options.folder}")
    states = [run_state(path, options.folder) for path in run_folders(options.folder) if is_run(path)]
    if options.json:
        for state in states:
            print(json.dumps(asdict(state)))
    elif not states:
        print(f"no runs in {options.folder}")
    else:
        console = Console()
        print_runs(states, console, console.width if console.is_terminal else None)
        for state in states:
            if state.message:
                _print_line(console, f"{state.run}: {state.message}")
    return 0


def print_runs(states: list[RunState], console: Console, width: int | None) -> None:
    """Print the runs as the fullest table that fits into a width, so that no name is broken over lines.

    If none fits, print two lines for each run, its name and its state. None: any width.
    """
    for columns in _TABLES:
        table = _table(states, columns)
        needed = Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), table).maximum
        if width is None or needed <= width:
            console.width = max(console.width, needed)
            console.print(table)
            return
    for state in states:
        cells = {name: cell for name, cell in _cells(state).items() if cell and name != "run"}
        unnamed = " ".join(cells.pop(name) for name in ("state", "task", "algo", "reward") if name in cells)
        _print_line(console, state.run)
        _print_line(console, f"  {unnamed}, {', '.join(f'{name} {cell}' for name, cell in cells.items())}")


def _print_line(console: Console, text: str) -> None:
    """Print a line that the terminal wraps, if it has to: what is copied from it has no breaks."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _cells(state: RunState) -> dict[str, str]:
    """Return what is shown of a run, by column."""
    return {
        "run": state.run,
        "state": state.state,
        "task": state.task,
        "tested in": state.test_env or "",
        "algo": state.algo,
        "reward": state.reward,
        "seed": str(state.seed),
        "step": f"{state.step:,}",
        "done": f"{min(1.0, state.step / state.steps):.0%}" if state.steps else "",
        "success": "" if state.success is None else f"{state.success:.0%}",
    }


def _table(states: list[RunState], columns: Sequence[str]) -> Table:
    """Return the runs as a table with these columns; test environments are left out if all are the tasks' own."""
    rows = [_cells(state) for state in states]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    shown = [name for name in columns if name != "tested in" or any(row[name] for row in rows)]
    for name in shown:
        table.add_column(name, justify="right" if name in _NUMBERS else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(row[name], STATUS_STYLES.get(row[name], "") if name == "state" else "") for name in shown))
    return table
