"""Benchmarks: each checks its results, then times them beside the machine's own limit."""
