"""What the package offers is what it says it offers."""

import importlib
import inspect

import pytest

import nescio

MODULES = [
    *("nescio", "nescio.audit", "nescio.dpf", "nescio.errors", "nescio.net", "nescio.pir"),
    "nescio.quant",
    "nescio.service",
]


@pytest.mark.parametrize("name", MODULES)
def test_every_name_that_is_exported_exists_and_is_documented(name):
    module = importlib.import_module(name)
    assert list(module.__all__) == sorted(module.__all__, key=_isort_order)
    for export in module.__all__:
        thing = getattr(module, export)
        if inspect.isclass(thing) or inspect.isfunction(thing) or inspect.ismodule(thing):
            assert thing.__doc__, f"{name}.{export} has no docstring"


def _isort_order(name):
    """Constants, then classes, then the rest."""
    return (not name.isupper(), not name[:1].isupper(), name)


def test_the_list_of_exports():
    assert nescio.__all__ == [
        "Client",
        "NescioError",
        "Query",
        "Server",
        "Table",
        "TableParams",
        "__version__",
        "dpf",
        "errors",
    ]


def test_every_error_is_in_the_tree_of_its_module():
    tree = nescio.errors.__doc__
    for name in nescio.errors.__all__:
        assert issubclass(getattr(nescio.errors, name), nescio.NescioError)
        assert f"{name} " in tree or f"{name}\n" in tree
