"""What those see who have no PyTorch."""

import subprocess
import sys

BLOCKED = """
import sys
sys.modules["torch"] = None
import nescio.audit
try:
    import nescio.audit.leakage
except ImportError as error:
    print(error)
"""
EXTRA = "nescio.audit.leakage needs PyTorch: pip install 'nescio[audit-attacks]'"


def test_the_import_names_the_extra():
    result = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True)
    assert result.stdout == f"{EXTRA}\n"
    assert not result.stderr


def test_the_bench_names_it_too():
    code = """
import sys
sys.modules["torch"] = None
from nescio.cli import main
sys.exit(main(["bench", "audit", "--only", "table-6.2"]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr == f"nescio: table-6.2: {EXTRA}\n"
