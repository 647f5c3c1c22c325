"""The public names of the package: they exist, are documented, and load lazily."""

import importlib
import inspect
import json
import subprocess
import sys

import pytest

import nescio

LAZY = ["audit", "compat", "mpc", "net", "ot", "quant", "service"]
MODULES = [
    *("nescio", "nescio.audit", "nescio.dpf", "nescio.errors", "nescio.mpc", "nescio.net"),
    *("nescio.ot", "nescio.pir", "nescio.pir.batch", "nescio.quant", "nescio.service"),
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


def test_submodules_are_attributes_that_load_at_their_first_use():
    code = """
import json, sys, nescio
names = sys.argv[1:]
before = [name for name in names if f"nescio.{name}" in sys.modules]
loaded = [getattr(nescio, name).__name__ for name in names]
print(json.dumps([before, loaded, sorted(set(names) - set(dir(nescio)))]))
"""
    run = subprocess.run(
        [sys.executable, "-c", code, *LAZY], capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == [[], [f"nescio.{name}" for name in LAZY], []]
    with pytest.raises(AttributeError, match="no attribute 'lut'"):
        nescio.lut  # noqa: B018


def test_public_modules_of_ot_are_attributes():
    code = "import nescio; print(nescio.ot.estimate.__name__, nescio.ot.parameters.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["nescio.ot.estimate", "nescio.ot.parameters"]


@pytest.mark.parametrize("name", ["dpf", "errors", *LAZY])
def test_the_package_lists_its_modules(name):
    assert f"nescio.{name} " in nescio.__doc__
    assert name in dir(nescio)


def test_names_are_listed_with_packages_that_a_tool_replaces():
    code = """
import sys, types
sys.modules["torch"] = types.ModuleType("torch")  # without a __spec__, as Sphinx replaces it
import nescio, nescio.audit
assert "leakage" in dir(nescio.audit)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_error_is_in_the_tree_of_its_module():
    tree = nescio.errors.__doc__
    for name in nescio.errors.__all__:
        assert issubclass(getattr(nescio.errors, name), nescio.NescioError)
        assert f"{name} " in tree or f"{name}\n" in tree


def test_names_are_listed_only_if_they_can_be_imported():
    code = """
import inspect, sys
for name in ("flwr", "httpx", "matplotlib", "starlette", "torch"):
    sys.modules[name] = None  # as if it were not installed
import nescio, nescio.audit
for module in (nescio, nescio.audit):
    inspect.getmembers(module)
assert not {"service", "as_html", "leakage"} & {*dir(nescio), *dir(nescio.audit)}
try:
    nescio.service
except ModuleNotFoundError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (
        "nescio.service needs httpx: pip install 'nescio[service]'\n",
        "",
    )
