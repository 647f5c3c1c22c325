"""The operator's side of a table: its journal of changes, the state of both parties, repairs."""

from .journal import Entry, Journal
from .parties import Parties
from .repair import Repairs
from .status import PartyStatus, TableStatus, status_of

__all__ = ["Entry", "Journal", "Parties", "PartyStatus", "Repairs", "TableStatus", "status_of"]
