"""The attack: participation columns and updates from sums and counts."""
