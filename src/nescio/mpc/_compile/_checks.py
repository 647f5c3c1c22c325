"""Calls that PyTorch computes in a way that layers would not: each is refused."""

import torch

from ._call import Call
from ._functions import FUNCTIONS
from ._graph import Node, name_of

_LENGTHS = {"1d": 3, "2d": 4}


def check_call(call: Call, node: Node, name: str) -> None:
    """Raises ArgumentError for results that are whole numbers or bits, and for missing batches."""
    value = node.meta["val"]
    found = value[0] if isinstance(value, list | tuple) else value
    read = [one.meta["val"] for one in node.all_input_nodes]
    refusal = call.layers.refusal
    if name.startswith(("max_pool", "adaptive_max_pool")) and _has_places(node):
        raise refusal(f"found the places of a maximum ({name})", "its values", "leave them out")
    if name == "view" and call.get("dtype") is not None:
        raise refusal("found a view of bits as another type", "floats", "convert it by .to")
    if not _keeps(name, found, read):
        remedy = "make floats of its inputs by .float() first"
        raise refusal(f"found {name} with a result of {found.dtype}", "floats", remedy)
    lengths = _LENGTHS.get(name.partition("_with_")[0][-2:], read[0].ndim)
    if read[0].ndim != lengths:
        expected = f"{lengths} dimensions, of which the first is the batch"
        remedy = "keep the batch: unsqueeze(1) adds a channel"
        raise refusal(f"found {name} of a shape {tuple(read[0].shape)}", expected, remedy)


def _has_places(node: Node) -> bool:
    """Tests if the second result is used."""
    return any(name_of(user) == "getitem" and user.args[1] == 1 for user in node.users)


def _keeps(name: str, found: torch.Tensor, read: list[torch.Tensor]) -> bool:
    """Tests that floats are not rounded, and that truth values are not added as such."""
    if name in FUNCTIONS or found.is_floating_point():
        return True
    if name == "add" and found.dtype is torch.bool:
        return False
    return not any(one.is_floating_point() for one in read)
