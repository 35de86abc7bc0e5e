"""`higl watch`: the page about runs, served to this machine while they train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from higl.commands.arguments import Argument, Runs
from higl.commands.command import command
from higl.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """Serve the report of runs to browsers on this machine; the page refreshes itself while they train."""

    runs: Runs
    """Run folders, or folders that contain runs."""
    port: Annotated[int | None, Argument(metavar="PORT", default="the first free one from 8765")] = None
    """Port to listen on."""
    every: float = 5.0
    """Seconds between two checks for new data."""


@command("watch", WatchOptions)
def watch(options: WatchOptions) -> int:
    """Serve the page about runs until interrupted."""
    if not options.every > 0:
        raise SettingsError("--every must be more than 0")
    if options.port is not None and not 0 <= options.port <= 65535:
        raise SettingsError(f"--port {options.port}: expected a number from 0 to 65535")
    from higl.figures.watch import make_server

    server = make_server(options.runs, options.port, options.every)
    print(f"http://{server.server_address[0]}:{server.server_address[1]}/ shows the runs; Ctrl-C stops", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0
