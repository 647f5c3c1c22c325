"""Faults of a table in shards on a Ray cluster of three nodes, all on this machine."""
