"""A client's stores, PATH, PATH.2, PATH.3 and so on: their names, and replacing those used up."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import ArgumentError, FileError
from .._plans.plan import PublicPlan
from .._store import Store

__all__ = ["check_new", "left_in", "new_path", "publish", "remove_used_up", "stores_of"]

_CONFLICT_SECONDS = 1.0
_NUMBER = r"\.([2-9]|[1-9][0-9]{1,8})"


def new_path(path: Path) -> Path:
    """Returns the first free name among PATH, PATH.2, PATH.3 and so on."""
    number = 1
    while (found := _numbered(path, number)).exists():
        number += 1
    return found


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.name}.{number}")


def stores_of(path: Path) -> list[Path]:
    """Lists the stores that are there: PATH, PATH.2, PATH.3 and so on, some of which may lack."""
    numbers = [1] if path.is_file() else []
    with suppress(OSError):
        for one in path.parent.iterdir():
            found = re.fullmatch(re.escape(path.name) + _NUMBER, one.name)
            if found:
                numbers.append(int(found[1]))
    return [_numbered(path, number) for number in sorted(numbers)]


def left_in(path: Path, public: PublicPlan) -> int:
    """Returns the inferences that are left in a store. Raises FileError for one of another plan."""
    with Store(path) as store:
        found = store.contents
        if (found.role, found.plan) != ("client", public.network.digest):
            raise FileError(
                f"{path}: found a store of a {found.role} for network {found.plan[:12]}, expected "
                f"one of a client for {public.network.digest[:12]}"
            )
        return store.left


def check_new(path: Path) -> None:
    """Raises FileError unless `publish` may use the name: it is free, or that of a used-up store.

    Raises ArgumentError if the folder does not exist.
    """
    if path.exists():
        with _used_up(path):
            return
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"{path} cannot be written: its folder does not exist")


def publish(new: Path, path: Path) -> None:
    """Gives a complete store its name, which may be that of a store that is used up.

    Raises FileError as `check_new` does: the name may have been taken meanwhile.
    """
    end = time.monotonic() + _CONFLICT_SECONDS
    while True:
        try:
            os.link(new, path)
        except FileExistsError:
            try:
                with _used_up(path):
                    new.replace(path)
            except FileError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)  # another process may have looked at it
                continue
        return


def remove_used_up(path: Path) -> None:
    """Removes a store if nothing is left in it, and no other process uses it."""
    with suppress(FileError), _used_up(path):
        path.unlink(missing_ok=True)


@contextmanager
def _used_up(path: Path) -> Iterator[None]:
    """Holds a client's store in which nothing is left. Raises FileError for any other file."""
    try:
        store = Store(path)
    except FileError as error:
        raise FileError(
            f"{path} exists and cannot be replaced ({error}): choose another name"
        ) from error
    with store:
        if store.contents.role != "client":
            raise FileError(f"{path} exists, and is a server's store: choose another name")
        if store.left:
            raise FileError(
                f"{path} exists, and {store.left:,} prepared inferences are left in it: use them, "
                f"or prepare more in {_next_to(path)}, which is used after it by itself"
            )
        yield


def _next_to(path: Path) -> Path:
    """Returns a free name that is found together with a path's, also with that of PATH.2."""
    found = re.fullmatch(f"(.+){_NUMBER}", path.name)
    first = path.with_name(found[1]) if found else path
    return new_path(first if first.exists() else path)
