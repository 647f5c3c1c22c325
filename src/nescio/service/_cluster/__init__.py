"""The service of one party on its own Ray cluster: shards of tables, their heads, and fronts.

    front      the HTTP service: batches requests, asks a replica of every shard, adds the answers
    head       an actor for each table: parameters, versions, the journal, changes in two steps
    shard      an actor that holds some rows in memory; R of them, the replicas, hold the same rows

Security model: that of the service (../_app.py). Fronts, heads and shards of one party see the
queries to this party and nothing of the other one. Whoever reaches the ports of a Ray cluster runs
code on it: each party has a cluster of its own, on a network of its own.
"""

from ._connect import connected
from ._front import ClusterServer
from ._open import ClusterOptions, open_table

__all__ = ["ClusterOptions", "ClusterServer", "connected", "open_table"]
