"""Functions of the user that a command line names, such as --quality."""

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from ..errors import ArgumentError

__all__ = ["load_function"]


def load_function(name: str) -> Callable[..., object]:
    """Imports module:function or path.py:function; wraps it so that its errors name it.

    Modules are also found in the current directory. Raises ArgumentError if it does not exist.
    """
    source, _, attribute = name.rpartition(":")
    if not source or not attribute:
        raise ArgumentError(f"found {name!r}, expected module:function or path.py:function")
    module = _file(source, name) if source.endswith(".py") else _module(source, name)
    function = getattr(module, attribute, None)
    if not callable(function):
        where = source if source.endswith(".py") else f"module {source}"
        raise ArgumentError(f"{name}: found no function {attribute!r} in {where}")

    @functools.wraps(function)
    def called(*arguments: object) -> object:
        try:
            return function(*arguments)
        except (MemoryError, ModuleNotFoundError):
            raise
        except Exception as error:
            raise _raised(name, error) from error

    return called


def _module(module_name: str, name: str) -> ModuleType:
    """Imports a module. Raises ArgumentError if it does not exist or raises an exception."""
    if "" not in sys.path:
        sys.path.insert(0, "")  # as `python -m` has it
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        raise ArgumentError(
            f"{name}: found no module {error.name!r}, expected one in the current directory or "
            "installed"
        ) from error
    except MemoryError:
        raise
    except Exception as error:
        raise _raised(name, error) from error


def _file(path: str, name: str) -> ModuleType:
    """Imports a file. Raises ArgumentError if it does not exist or raises an exception."""
    if not Path(path).is_file():
        raise ArgumentError(f"{name}: found no file {path}")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (MemoryError, ModuleNotFoundError):
        raise
    except Exception as error:
        raise _raised(name, error) from error
    return module


def _raised(name: str, error: Exception) -> ArgumentError:
    """Builds the error for an exception in the user's code."""
    return ArgumentError(
        f"{name} raised {type(error).__name__}: {error} (set NESCIO_DEBUG=1 for the traceback)"
    )
