"""Batch lookups: tables in bins, shaped by an access log."""
