"""Figures like the paper's, drawn from `results/`: every variant of a catalogue entry on each of its tasks.

The runs of a variant are found by the name of their folder, as `higl results add` and `higl sweep collect` give it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from higl.errors import SettingsError
from higl.figures.comparison import draw_comparison
from higl.figures.curves import save
from higl.figures.panels import Panel, Reference, automatic_smoothing, comparison_panel
from higl.figures.statistics import Smoothing
from higl.run.files import EVALUATIONS
from higl.run.naming import algorithm_name, task_name, task_title
from higl.run.reading import Run, read_run
from higl.settings.layers import build_config
from higl.sweep.catalogue import Entry, EntryTask, Variant, find_entry, read_catalogue
from higl.sweep.published import published

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: Mapping[str, tuple[str, ...]] = {
    "figure3": ("fig3-best",),
    "figure3-paper": ("fig3",),
    "figure4": ("fig4a", "fig4b", "fig4c"),
    "figure5": ("fig5a", "fig5b", "fig5c"),
    "figure-sparse": ("sparse-coverage", "sparse-novelty", "sparse-landmarks", "sparse-shift", "sparse-degree"),
    "figure-appendix": ("discard", "automatic-shift", "baselines"),
    "figure-larger": ("larger-maze-best", "larger-maze"),
}
"""The figures of the documentation: name of the file, and the entries of the catalogue that it shows."""

Folders = dict[Path, list[Run]]
"""The runs of each folder TASK-REWARD/ALGO-VARIANT that has evaluations."""


def read_folders(results: Path) -> Folders:
    """Return the runs in `results/`, by folder."""
    folders: Folders = {}
    for file in sorted(results.glob(f"*/*/seed-*/{EVALUATIONS}")):
        run = read_run(file.parent)
        if len(run.evaluations["step"]):
            folders.setdefault(file.parent.parent.relative_to(results), []).append(run)
    return folders


def runs_of(folders: Folders, entry: Entry, task: EntryTask, variant: Variant) -> list[Run]:
    """Return the runs of a variant on a task: all seeds that are there, whatever their number of steps.

    If rewards do not matter in training and there are no runs with these, those with the sparse reward are the same.
    """
    config = build_config(entry.given(task, variant, 0, {}))
    runs = folders.get(Path(task_name(config)) / algorithm_name(config), [])
    if runs or config.learns_from_rewards:
        return runs
    return folders.get(Path(task_name(replace(config, reward="sparse"))) / algorithm_name(config), [])


# --- Panels ---------------------------------------------------------------------------------------------------------


def entry_panels(folders: Folders, entry: Entry, smoothing: Smoothing, *, alone: bool) -> list[Panel]:
    """Return a panel for each task of an entry; `alone`: without other entries, so that tasks are the titles."""
    panels = []
    for task in entry.tasks:
        title = task_title(task.task, task.reward)
        runs = {variant.name: runs_of(folders, entry, task, variant) for variant in entry.variants}
        panel = comparison_panel(title, runs, smoothing, _references(entry, task))
        panels.append(panel if alone else replace(panel, title=f"{_subject(entry)}\n{title}", references=()))
    return panels


def _subject(entry: Entry) -> str:
    """Return the title of an entry without the number of its figure: 'Coverage-based landmarks'."""
    subject = entry.title.rpartition(": ")[2].partition(",")[0]
    return subject[:1].upper() + subject[1:]


def _references(entry: Entry, task: EntryTask) -> list[Reference]:
    """Return the published results of the algorithms that an entry compares: those of the paper, else all others."""
    algorithms = dict.fromkeys(str(variant.settings.get("algo", "higl")) for variant in entry.variants)
    found = [value for algo in algorithms for value in published(task.task, task.reward, algo)]
    of_the_paper = [value for value in found if value.source == "the paper"]
    return [Reference(value.text, value.algo, value.success) for value in of_the_paper or found]


# --- Figures --------------------------------------------------------------------------------------------------------


def entries_of(names: Iterable[str]) -> list[Entry]:
    """Return entries of the paper's catalogue that have curves.

    Raises:
        CatalogueError: there is no such entry.
        SettingsError: an entry shows landmark maps, for which `results/` has no data.
    """
    catalogue = read_catalogue()
    entries = [find_entry(catalogue, name) for name in names]
    for entry in entries:
        if entry.draw != "curves":
            raise SettingsError(
                f"{entry.name} shows landmark maps: `higl sweep figure {entry.name}` draws it from runs"
            )
    return entries


def draw_entries(folders: Folders, entries: Sequence[Entry]) -> Figure:
    """Draw the panels of one or more entries; one legend for all of them if the variants are the same."""
    smoothing = automatic_smoothing(_shown(folders, entries))
    panels = [panel for e in entries for panel in entry_panels(folders, e, smoothing, alone=len(entries) == 1)]
    names = {tuple(variant.name for variant in entry.variants) for entry in entries}
    return draw_comparison(panels, shared_legend=len(names) == 1)


def _shown(folders: Folders, entries: Sequence[Entry]) -> list[Run]:
    """Return the runs that a figure of some entries shows, each once."""
    places = [(entry, task, variant) for entry in entries for task in entry.tasks for variant in entry.variants]
    runs = {run.path: run for place in places for run in runs_of(folders, *place)}
    return list(runs.values())


def digest(folders: Folders, entries: Sequence[Entry]) -> str:
    """Return a digest of all that a figure shows. It is kept in the picture, so that an outdated one is noticed."""
    content = hashlib.sha256(repr([(e.title, e.tasks, e.variants) for e in entries]).encode())
    for run in _shown(folders, entries):
        content.update("/".join(run.path.parts[-3:]).encode() + (run.path / EVALUATIONS).read_bytes())
    return content.hexdigest()[:16]


def save_entries(folders: Folders, entries: Sequence[Entry], path: Path) -> int:
    """Draw entries into a file; return the number of runs that it shows."""
    save(draw_entries(folders, entries), path, note=digest(folders, entries))
    return len(_shown(folders, entries))


def is_current(folders: Folders, entries: Sequence[Entry], path: Path) -> bool:
    """Return whether a picture (png) exists and shows what is in the folders now."""
    from PIL import Image

    if not path.is_file():
        return False
    with Image.open(path) as picture:
        return picture.info.get("Description") == digest(folders, entries)


def documented(folders: Folders) -> dict[str, list[Entry]]:
    """Return the entries of each figure of the documentation that has runs."""
    found = {name: entries_of(names) for name, names in FIGURES.items()}
    return {name: entries for name, entries in found.items() if _shown(folders, entries)}
