"""Benchmarks of this machine: each checks results, then times them and the machine's limits."""
