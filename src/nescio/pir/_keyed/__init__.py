"""Keyed tables: lookups of text, bytes and integers rather than of row numbers."""

from ._client import KeyedClient, KeyedResult
from ._keys import KeyKind, pack_keys
from ._layout import KeyedLayout
from ._table import KeyedTable

__all__ = [
    "KeyKind",
    "KeyedClient",
    "KeyedLayout",
    "KeyedResult",
    "KeyedTable",
    "pack_keys",
]
