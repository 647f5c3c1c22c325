"""Benchmarks of the HTTP service: its throughput, its fairness, and lookups beside updates."""

from ._cases import run

__all__ = ["run"]
