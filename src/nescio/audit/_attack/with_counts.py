"""Columns with counts: the searches in their order, and the assignment to users."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from .milp import has_solver
from .programs import solve_programs
from .reflect import reflect_all
from .state import State
from .without_counts import fill

__all__ = ["find_columns"]


def find_columns(
    state: State, method: str, step: Callable[[str], AbstractContextManager[None]]
) -> str:
    """Searches for the columns of all users; returns the methods that found them."""
    if method != "program":
        with step("reflect"):
            reflect_all(state)
    if method == "auto":
        with step("lattice"):
            if fill(state.log, state.subspace, state.active, state.columns, state.deadline):
                state.method = "reflect and lattice"
    if method == "program" or (method == "auto" and has_solver()):
        with step("program"):
            solve_programs(state, every=method == "program")
    return state.method
