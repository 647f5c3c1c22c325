"""Behavior without PyTorch or safetensors, and that nothing imports PyTorch by itself."""

import subprocess
import sys

import pytest

BLOCKED = """
import sys
sys.modules["{missing}"] = None
import nescio
assert "torch" not in dir(nescio)
try:
    {line}
except ModuleNotFoundError as error:
    print(error, error.name)
"""


@pytest.mark.parametrize("missing", ["torch", "safetensors"])
@pytest.mark.parametrize("line", ["nescio.torch", "import nescio.torch"])
def test_the_error_names_the_extra(missing, line):
    code = BLOCKED.format(missing=missing, line=line)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = "nescio.torch needs PyTorch and safetensors: pip install 'nescio[torch]'"
    assert run.stderr == ""
    assert run.stdout in {f"{said} torch\n", f"{said} {missing}\n"}


def test_nothing_imports_torch_by_itself():
    code = """
import sys, nescio, nescio.pir, nescio.service
dir(nescio)
print([name for name in sys.modules if name.split(".")[0] == "torch" or name == "nescio.torch"])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_it_is_an_attribute_that_loads_at_its_first_use():
    pytest.importorskip("torch")
    code = """
import nescio
assert "torch" in dir(nescio)
for name in nescio.torch.__all__:
    assert getattr(nescio.torch, name).__doc__
print(*nescio.torch.__all__)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("PrivateEmbedding PrivateEmbeddingBag export load\n", "")


def test_the_package_lists_it():
    import nescio  # noqa: PLC0415

    assert "nescio.torch " in nescio.__doc__
