"""A `higl watch` server in a thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from higl.figures.watch import make_server


@contextmanager
def serving(*paths: Path, seconds: float = 5.0) -> Iterator[int]:
    """Serve the page of some runs on a free port, and yield the port."""
    server = make_server(list(paths), 0, seconds)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
