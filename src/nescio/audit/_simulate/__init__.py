"""Simulated runs with known participation, defenses, and sweeps over settings."""
