"""Snapshots of a table that changes, and the changes of a journal made again."""

from ._snapshot import Kept, open_snapshot, save_snapshot
from ._versions import Versions

__all__ = ["Kept", "Versions", "open_snapshot", "save_snapshot"]
