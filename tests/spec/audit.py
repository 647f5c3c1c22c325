"""The attack on sums in plain Python, by exhaustive search: the executable specification.

Thesis chapter 6, section 6.3: A = P G, with P binary (rounds x users), and counts of P over
windows. Arithmetic is exact, so P and G hold integers here. Fast enough for a dozen rounds only.
"""

from fractions import Fraction
from itertools import product

Matrix = list[list[int]]
Windows = list[tuple[int, int]]

UNKNOWN = -1


def aggregates(participation: Matrix, updates: Matrix) -> Matrix:
    """Sum, for each round, the updates of the users who take part in it."""
    dimensions = len(updates[0])
    return [
        [
            sum(row[j] for taken, row in zip(users, updates, strict=True) if taken)
            for j in range(dimensions)
        ]
        for users in participation
    ]


def counts(participation: Matrix, windows: Windows) -> Matrix:
    """Count, for each user and window, the rounds of the window in which the user takes part."""
    users = len(participation[0])
    return [
        [sum(participation[t][k] for t in range(start, stop)) for start, stop in windows]
        for k in range(users)
    ]


def rank(rows: list[list[int]]) -> int:
    """Return the rank of a matrix, by elimination over the rationals."""
    left = [[Fraction(entry) for entry in row] for row in rows]
    found = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(found, len(left)) if left[i][column]), None)
        if pivot is None:
            continue
        left[found], left[pivot] = left[pivot], left[found]
        for i in range(found + 1, len(left)):
            ratio = left[i][column] / left[found][column]
            left[i] = [a - ratio * b for a, b in zip(left[i], left[found], strict=True)]
        found += 1
    return found


def independent(rows: list[list[int]]) -> list[list[int]]:
    """Select rows with the same span, none of which depends on the others."""
    kept: list[list[int]] = []
    for row in rows:
        if rank([*kept, row]) > len(kept):
            kept.append(row)
    return kept


def has_counts(
    column: tuple[int, ...], windows: Windows, wanted: list[int], error: int = 0
) -> bool:
    """Check a binary column against the known counts."""
    return all(
        count == UNKNOWN or abs(sum(column[start:stop]) - count) <= error
        for (start, stop), count in zip(windows, wanted, strict=True)
    )


def solutions(
    sums: Matrix, windows: Windows, wanted: list[int], error: int = 0
) -> list[tuple[int, ...]]:
    """List all binary columns in the column space of the sums that match the counts."""
    space = independent([list(column) for column in zip(*sums, strict=True)])
    return [
        column
        for column in columns_with(len(sums), windows, wanted, error)
        if rank([*space, list(column)]) == len(space)
    ]


def columns_with(
    rounds: int, windows: Windows, wanted: list[int], error: int = 0
) -> list[tuple[int, ...]]:
    """List all binary columns that match the counts."""
    return [c for c in product((0, 1), repeat=rounds) if has_counts(c, windows, wanted, error)]


def is_feasible(rounds: int, windows: Windows, wanted: list[int], error: int = 0) -> bool:
    """Check that some binary column has these counts."""
    return bool(columns_with(rounds, windows, wanted, error))


def status(sums: Matrix, windows: Windows, wanted: list[int]) -> str:
    """Return "unique" or "ambiguous" for a user whose column is in the span."""
    return "unique" if len(solutions(sums, windows, wanted)) == 1 else "ambiguous"
