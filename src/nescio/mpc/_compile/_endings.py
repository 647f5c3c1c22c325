"""The end of a model that gives classes: an argmax, and a softmax before it, if there is one."""

from ._graph import Graph, Node, name_of

_SOFTMAX = {"softmax", "_softmax", "log_softmax", "_log_softmax"}


def without_ending(graph: Graph, *, as_class: bool) -> tuple[Graph, bool]:
    """Returns the graph to the outputs (n, C) of which a model gives the largest one's place.

    Also tells if there is such an end. With `as_class` there is one that the model does not have.
    """
    output, left_out = graph.output, set[Node]()
    if (source := _largest_of(output)) is not None:
        left_out |= {output, *output.all_input_nodes} - {source}
        output, as_class = source, True
    while as_class and name_of(output) in _SOFTMAX and _is_along_classes(output):
        left_out.add(output)
        output = output.args[0]
    nodes = [node for node in graph.nodes if node not in left_out]
    return graph._replace(nodes=nodes, output=output), as_class


def _largest_of(node: Node) -> Node | None:
    """Returns the values (n, C) of which a node is torch.argmax(..., 1) or max(1).indices."""
    if name_of(node) == "getitem" and node.args[1] == 1 and name_of(node.args[0]) == "max":
        node = node.args[0]
    elif name_of(node) != "argmax":
        return None
    found = node.args[0]
    keeps = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
    return None if keeps or not _is_along_classes(node) else found


def _is_along_classes(node: Node) -> bool:
    """Tests for an operator along dimension 1 of values (n, C)."""
    dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    return node.args[0].meta["val"].ndim == 2 and dim in (1, -1)
