"""Errors without PyTorch name the extra to install."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
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


def test_the_benchmark_names_it_too():
    code = """
import sys
sys.modules["torch"] = None
from benchmarks.audit.__main__ import main
sys.exit(main(["figures", "--only", "table-6.2"]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 1
    assert result.stderr == f"nescio: table-6.2: {EXTRA}\n"
