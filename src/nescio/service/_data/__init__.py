"""Data folders: tables whose changes survive a crash, by journals and snapshots."""

from ._folder import Folder
from ._kept import KeptTable
from ._origin import Origin
from ._recover import Recovered, Recovery, recover

__all__ = ["Folder", "KeptTable", "Origin", "Recovered", "Recovery", "recover"]
