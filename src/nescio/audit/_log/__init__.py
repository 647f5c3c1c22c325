"""The log: what a server that sees only sums has on record, its file and its checks."""
