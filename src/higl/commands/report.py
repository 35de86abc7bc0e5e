"""`higl report`: one page about runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from higl.commands.arguments import Out, Runs
from higl.commands.command import check_suffix, command, warn
from higl.text import counted


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Write a self-contained page about runs: curves, landmark maps, evaluation paths, videos, settings, times."""

    runs: Runs
    """Run folders, or folders that contain runs."""
    out: Out = Path("report.html")
    """File to write: html."""


@command("report", ReportOptions)
def report(options: ReportOptions) -> int:
    """Write a page about runs."""
    check_suffix(options.out, (".html",))
    from higl.figures.report import write_report
    from higl.run.reading import find_runs, notices_of

    runs = find_runs(options.runs)
    warn(notices_of(runs))
    write_report(runs, options.out)
    size = options.out.stat().st_size / 1e6
    print(f"{options.out}: {counted(len(runs), 'run')}, {size:.1f} MB")
    return 0
