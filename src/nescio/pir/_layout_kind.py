"""The kinds of layouts that Nescio defines; applications may have others."""

from typing import Literal

LayoutKind = Literal["batch", "keyed", ""]


def layout_kind(layout: bytes) -> LayoutKind:
    """Returns the kind that the bytes of a layout claim, "" for no layout or one of another kind.

    Nothing is parsed: canonical layouts have these bytes only there. Their parsers check them.
    """
    if b'"kind":"batch"' in layout:
        return "batch"
    return "keyed" if b'"kind":"keyed"' in layout else ""
