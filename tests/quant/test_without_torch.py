"""Behaviour without PyTorch or without safetensors."""

import subprocess
import sys

import pytest

BLOCKED = """
import sys
sys.modules["{missing}"] = None
from nescio import quant
quant.quantize_weights([[1.0, -2.0]], 4)
try:
    {line}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("missing", "line", "said"),
    [
        ("torch", "quant.torch", "nescio.quant.torch needs PyTorch: pip install"),
        ("torch", "import nescio.quant.torch", "'nescio[quant-torch]'"),
        ("safetensors", "quant.load('a')", "needs safetensors to save and load: pip install"),
        ("safetensors", "quant.save(quant.Sequential(), 'a')", "'nescio[quant]'"),
    ],
)
def test_the_error_names_the_extra(missing, line, said):
    code = BLOCKED.format(missing=missing, line=line)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said in result.stdout
    assert not result.stderr


def test_other_names_do_not_exist():
    from nescio import quant  # noqa: PLC0415

    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        quant.nothing  # noqa: B018


def test_nothing_imports_torch_by_itself():
    code = "import sys, nescio.quant._store, nescio.quant.search; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "False\n", result.stderr
