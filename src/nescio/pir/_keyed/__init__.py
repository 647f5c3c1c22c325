"""Keyed tables: lookups of text, bytes and integers rather than of row numbers."""

from ._client import KeyedClient, KeyedResult
from ._keys import MAX_KEY_BYTES
from ._layout import KeyedLayout
from ._table import KeyedTable

__all__ = ["MAX_KEY_BYTES", "KeyedClient", "KeyedLayout", "KeyedResult", "KeyedTable"]
