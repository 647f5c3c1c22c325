"""Faults of two parties on loopback: what is lost, what is wrong, and the longest outage.

    python -m benchmarks.faults suite      each fault in turn, with updates and lookups meanwhile
    python -m benchmarks.faults soak       updates and lookups for an hour, and the servers' memory

The parties are `nescio serve` in processes of their own, with `--data`. Every row of every
lookup is compared with a model of the table.
"""
