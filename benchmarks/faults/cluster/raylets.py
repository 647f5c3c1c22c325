"""A Ray cluster of several nodes on this machine: a raylet for each, by Ray's own utility."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from nescio.service._cluster._connect import INLINE_BYTES, import_ray

_ADDRESS = "127.0.0.2"
_OBJECT_BYTES = 100 << 20  # of each node: the keys and answers of some batches


class Raylets:
    """Nodes on loopback, with a token that this process and its children have.

    The first node has the cluster's own state. `folder` has short names in it: it has sockets.
    """

    def __init__(self, folder: Path, nodes: int = 3, cpus: int = 2) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_worker_niceness", "0")
        os.environ.setdefault("RAY_agent_register_timeout_ms", "120000")
        ray = import_ray()
        # Of a raylet that ends Ray prints the last lines of its log, among those of the caller.
        ray._private.worker.print_to_stdstream = lambda *_, **__: None
        from ray.cluster_utils import Cluster  # noqa: PLC0415 - reads the environment

        self._common: dict[str, Any] = {
            "num_cpus": cpus,
            "object_store_memory": _OBJECT_BYTES,
            "node_ip_address": _ADDRESS,
        }
        first = {
            **self._common,
            "include_dashboard": False,
            "temp_dir": str(folder),
            "_system_config": {"max_direct_call_object_size": INLINE_BYTES},
        }
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=first)
        for _ in range(nodes - 1):
            self.add()

    @property
    def address(self) -> str:
        """The address for `--cluster`."""
        return str(self._cluster.address)

    @property
    def others(self) -> list[str]:
        """The ids of all nodes that `kill` can end: all but the first."""
        return [node.node_id for node in self._cluster.worker_nodes]

    def add(self) -> None:
        """Starts one more node, and waits for it."""
        self._cluster.add_node(**self._common)

    def kill(self, ident: str) -> None:
        """Ends a node's raylet by SIGKILL; the processes of its actors end with it."""
        node = next(node for node in self._cluster.worker_nodes if node.node_id == ident)
        self._cluster.remove_node(node, allow_graceful=False)

    def stop(self) -> None:
        """Ends all nodes."""
        with suppress(AssertionError):  # a process that ends slowly
            self._cluster.shutdown()
