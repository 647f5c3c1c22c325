"""A simulation of a party whose table is cut by rows over the machines of a cluster.

Discrete events: requests arrive at fronts, which send each batch of keys to a replica of every
shard and add the partial answers. docs/cluster-simulation.md describes the model and its limits.
"""
