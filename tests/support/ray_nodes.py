"""Start the nodes of a Ray cluster on loopback: a head without cores, and another node for each line `add`.

It prints a line of JSON for each node, and stops all of them at the end of its input.
"""

import json
import socket
import sys
from collections.abc import Callable
from typing import Any

from ray.cluster_utils import Cluster

TRIES = 5
# Ports of a node's agents, chosen here so that the node does not wait for the agents to choose them.
AGENTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")


def settings(cores: int) -> dict:
    """Return the settings of a small node."""
    sockets = [socket.socket() for _ in AGENTS]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = dict(zip(AGENTS, [each.getsockname()[1] for each in sockets], strict=True))
    for each in sockets:
        each.close()
    return {"num_cpus": cores, "object_store_memory": 80_000_000, "include_dashboard": False, **ports}


def persistently(start: Callable[[], Any]) -> Any:
    """Start a node again if it fails: it gives its agents 15 seconds, which may be too short on a busy machine."""
    for _ in range(TRIES):
        try:
            return start()
        except Exception as error:
            print(f"trying again: {error}", file=sys.stderr, flush=True)
    raise SystemExit("the node cannot be started")


cluster = persistently(lambda: Cluster(initialize_head=True, head_node_args=settings(0)))
print(json.dumps({"address": cluster.address}), flush=True)
for _ in sys.stdin:
    node = persistently(lambda: cluster.add_node(**settings(1)))
    [raylet] = node.all_processes["raylet"]
    print(json.dumps({"raylet": raylet.process.pid}), flush=True)
cluster.shutdown()
