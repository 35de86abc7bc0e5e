"""`higl runs`: a table of runs. Imports neither NumPy nor JAX."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from rich import box
from rich.console import Console
from rich.table import Table

from higl.commands.arguments import Argument, Switch
from higl.commands.command import command
from higl.errors import WrongFolderError
from higl.run.progress import STATUS_STYLES
from higl.run.reading import RunState, is_run, run_folders, run_state

# Columns of a terminal from which on the table shows everything.
_WIDE = 110


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
        console.print(runs_table(states, console.width))
        for state in states:
            if state.message:
                console.print(f"{state.run}: {state.message}", markup=False, highlight=False, soft_wrap=True)
    return 0


def runs_table(states: list[RunState], width: int) -> Table:
    """Return the runs as a table; a narrow one omits the columns that default folder names contain."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("run", overflow="fold")
    for name in ("state", "task", "algo", "reward", "seed")[: 5 if width >= _WIDE else 2]:
        # Long names of runs and tasks share the width: the longer is folded first.
        table.add_column(name, no_wrap=name != "task", overflow="fold")
    for name in ("step", "done", "success"):
        table.add_column(name, justify="right", no_wrap=True)
    for state in states:
        cells = [state.run.replace("[", "\\["), f"[{STATUS_STYLES[state.state]}]{state.state}[/]", state.task]
        if width >= _WIDE:
            cells += [state.algo, state.reward, str(state.seed)]
        done = f"{min(1.0, state.step / state.steps):.0%}" if state.steps else ""
        table.add_row(*cells, f"{state.step:,}", done, "" if state.success is None else f"{state.success:.0%}")
    return table
