"""Keeps the nodes of a Ray cluster on loopback: a head without cores, and one more node for each line `add`.

Prints a line of JSON for each; ends them all at the end of its input.
"""

import json
import sys

from ray.cluster_utils import Cluster

SMALL = {"object_store_memory": 80_000_000, "include_dashboard": False}

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
print(json.dumps({"address": cluster.address}), flush=True)
for _ in sys.stdin:
    node = cluster.add_node(wait=False, num_cpus=1, **SMALL)
    [raylet] = node.all_processes["raylet"]
    print(json.dumps({"raylet": raylet.process.pid}), flush=True)
cluster.shutdown()
