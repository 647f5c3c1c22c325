"""Snapshots of a table that changes, and the changes of a journal made again."""

from ._replay import Replay
from ._snapshot import Kept, open_snapshot, save_snapshot

__all__ = ["Kept", "Replay", "open_snapshot", "save_snapshot"]
