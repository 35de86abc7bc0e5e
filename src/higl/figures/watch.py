"""`higl watch`: serves the report of runs to this machine only; the page updates itself while they train."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from higl.errors import NoRunsError, PortError
from higl.figures.report import build_report
from higl.run.files import CONFIG, EVALUATIONS, FACTS, METRICS, SNAPSHOTS, VIDEO
from higl.run.reading import Run, find_runs

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8765
# Number of ports from the default one on that are tried when it is in use.
_TRIED = 20
_OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")


def fingerprint(runs: Sequence[Run]) -> str:
    """Return a short text that changes whenever a file of the runs changes."""
    digest = hashlib.sha256()
    for run in runs:
        names = [run.path / name for name in (CONFIG, FACTS, METRICS, EVALUATIONS, VIDEO, SNAPSHOTS)]
        for path in [*names, *(snapshot.path for snapshot in run.snapshots)]:
            try:
                found = path.stat()
                digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
            except OSError:
                digest.update(f"{path} missing\n".encode())
    return digest.hexdigest()[:16]


class Watch:
    """The page of some runs, built again when their files have changed."""

    def __init__(self, paths: Sequence[Path], seconds: float):
        self._paths, self._seconds = list(paths), seconds
        self._lock = threading.Lock()
        self._version, self._page = "", b""

    def version(self) -> str:
        """Return the fingerprint of the current files."""
        return fingerprint(find_runs(self._paths))

    def page(self) -> bytes:
        """Return the page of the current files."""
        with self._lock:
            runs = find_runs(self._paths)
            version = fingerprint(runs)
            if version != self._version:
                text = build_report(runs, watch_seconds=self._seconds, version=version)
                self._version, self._page = version, text.encode()
            return self._page


class _Handler(BaseHTTPRequestHandler):
    """Answers `/` with the page and `/version` with its fingerprint, and only requests from this machine."""

    server: Any
    server_version, sys_version = "higl", ""

    def do_GET(self) -> None:
        """Answer a request."""
        if self.headers.get("Host", "").rpartition(":")[0] not in _OWN_NAMES:
            # Another site's name that resolves to this machine (DNS rebinding).
            return self._answer(403, b"this page is available from this machine only\n", "text/plain")
        make: dict[str, tuple[Callable[[], bytes], str]] = {
            "/": (self.server.watch.page, "text/html; charset=utf-8"),
            "/version": (lambda: self.server.watch.version().encode(), "text/plain"),
        }
        if self.path not in make:
            return self._answer(404, b"not found: the page is at /\n", "text/plain")
        content, kind = make[self.path]
        try:
            return self._answer(200, content(), kind)
        except (NoRunsError, OSError) as error:  # the folder was moved, or is being written
            return self._answer(503, f"{error}\n".encode(), "text/plain")

    do_HEAD = do_GET  # noqa: N815 (the name that the base class calls)

    def _answer(self, status: int, content: bytes, kind: str) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the page was closed

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


def make_server(paths: Sequence[Path], port: int | None = None, seconds: float = 5.0) -> ThreadingHTTPServer:
    """Return a server of the runs' page, bound to this machine's own address; start it with `serve_forever`.

    Args:
        paths: run folders, or folders that contain runs.
        port: port to listen on; 0 for any free one, None for the first free one from 8765 on.
        seconds: how often the page asks for changes.

    Raises:
        NoRunsError: there is no run.
        PortError: the port is in use.
    """
    find_runs(paths)
    tried = range(DEFAULT_PORT, DEFAULT_PORT + _TRIED) if port is None else (port,)
    for number in tried:
        try:
            server: Any = ThreadingHTTPServer((LOOPBACK, number), _Handler)
        except OverflowError:
            raise PortError(f"there is no port {number}: ports are numbered from 0 to 65535") from None
        except OSError as error:
            reason = error.strerror or str(error)
            continue
        server.daemon_threads = True
        server.watch = Watch(paths, seconds)
        return server
    raise PortError(f"port {tried[-1]} cannot be used ({reason.lower()}): choose another --port, or 0 for any")
