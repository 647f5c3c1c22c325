"""Specification of the class of ranks: the first one of the largest. And of ranks of outputs."""

RANKS = 1024


def largest(ranks):
    """Returns the place of the largest rank, the first of equal ones."""
    return max(range(len(ranks)), key=lambda place: (ranks[place], -place))


def ranks_of(output, low, high, margin):
    """Returns the ranks that an output can have: its place is rounded by chance."""
    half = (high - low) / 2 * (1 + margin)
    exact = (output - (low + high) / 2) / (half / RANKS)
    return {min(max((place + RANKS) // 2, 0), RANKS - 1) for place in (exact // 1, exact // 1 + 1)}
