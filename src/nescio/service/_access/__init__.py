"""Access: clients' keys, budgets, and the log of what operators do.

_keys.py     the file of clients' keys
_budgets.py  keys a second for each client
_access.py   tells clients apart, and admits them
_audit.py    a line for each action of an operator
"""

from ._access import Access
from ._audit import AUDIT, admit, audited
from ._keys import ClientKeys, new_client_key
from ._origins import check_origins, with_origins

__all__ = [
    "AUDIT",
    "Access",
    "ClientKeys",
    "admit",
    "audited",
    "check_origins",
    "new_client_key",
    "with_origins",
]
