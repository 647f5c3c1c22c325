"""Recording of Flower runs (https://flower.ai): `recorded` wraps a strategy with a Recorder."""

from ._recording.flower import recorded

__all__ = ["recorded"]
