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
from higl.errors import RunFolderError, WrongFolderError
from higl.run.reading import is_run, last_evaluation, last_step, read_config, read_facts, run_folders, run_status

_WIDE = 110


@dataclass(frozen=True, kw_only=True)
class RunsOptions:
    """List the runs below a folder."""

    folder: Annotated[Path, Argument(positional=True, metavar="DIR")] = Path("runs")
    """Folder to search."""
    json: Switch = False
    """Print one line of JSON per run."""


@dataclass(frozen=True)
class RunState:
    """What a run folder tells without reading its arrays. `success` is that of the last evaluation."""

    run: str
    state: str
    task: str = ""
    algo: str = ""
    reward: str = ""
    seed: int = 0
    step: int = 0
    steps: int = 0
    success: float | None = None
    evaluated_at: int | None = None
    updated: str = ""
    message: str | None = None


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


def run_state(path: Path, folder: Path) -> RunState:
    """Return what there is to say about a run, named as seen from `folder`; a damaged one is told as such."""
    name = str(path if path == folder else path.relative_to(folder))
    try:
        facts, config = read_facts(path), read_config(path)
    except RunFolderError as error:
        return RunState(name, "damaged", message=str(error))
    state = run_status(path, facts, config.steps)
    last = last_evaluation(path)
    return RunState(
        run=name,
        state=state,
        task=config.task,
        algo=config.algo,
        reward=config.reward,
        seed=config.seed,
        step=last_step(path),
        steps=config.steps,
        success=float(last["success"]) if last else None,
        evaluated_at=int(last["step"]) if last else None,
        updated=facts["updated"],
        message=facts.get("message") if state == "failed" else None,
    )


def runs_table(states: list[RunState], width: int) -> Table:
    """Return the runs as a table; a narrow one leaves out what the usual folder names say."""
    colours = {"running": "green", "finished": "bold", "stopped": "yellow", "failed": "red", "damaged": "red"}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("run", overflow="fold")
    for name in ("state", "task", "algo", "reward", "seed")[: 5 if width >= _WIDE else 2]:
        table.add_column(name, no_wrap=True)
    for name in ("step", "done", "success"):
        table.add_column(name, justify="right", no_wrap=True)
    for state in states:
        cells = [state.run.replace("[", "\\["), f"[{colours[state.state]}]{state.state}[/]", state.task]
        if width >= _WIDE:
            cells += [state.algo, state.reward, str(state.seed)]
        done = f"{min(1.0, state.step / state.steps):.0%}" if state.steps else ""
        table.add_row(*cells, f"{state.step:,}", done, "" if state.success is None else f"{state.success:.0%}")
    return table
