"""Benchmarks of the HTTP service: throughput, fairness, lookups beside updates."""
