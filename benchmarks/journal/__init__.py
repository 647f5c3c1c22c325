"""The cost of changes that last: python -m benchmarks.journal."""
