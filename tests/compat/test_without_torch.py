"""The error without PyTorch."""

import subprocess
import sys

BLOCKED = """
import sys
sys.modules["torch"] = None
try:
    import nescio.compat.gpu_dpf
except ImportError as error:
    print(error)
"""


def test_the_import_names_the_extra():
    result = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True)
    assert result.stdout == "nescio.compat.gpu_dpf needs PyTorch: pip install 'nescio[compat]'\n"
    assert not result.stderr
