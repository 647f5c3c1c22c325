"""Runs PyTorch on one thread.

The folder is not called `torch`, because `tests` is a folder that imports search.
"""

from one_thread import one_thread

__all__ = ["one_thread"]
