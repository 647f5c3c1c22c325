"""The API reference: its modules can be imported without PyTorch, and the packages are in it."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTED = re.findall(r"automodule:: (\S+)", (ROOT / "docs" / "api.md").read_text())
PACKAGES = {
    "nescio.pir.batch",
    "nescio.ot",
    "nescio.quant",
    "nescio.quant.torch",
    "nescio.torch",
    "nescio.audit",
}


def test_the_packages_are_documented():
    assert set(DOCUMENTED) >= PACKAGES


def test_the_torch_modules_need_no_pytorch_for_their_documentation():
    names = [name for name in DOCUMENTED if ".torch" in name]
    code = f"import _torch; _torch.install(); import nescio.audit, {', '.join(names)}"
    code += "; dir(nescio.audit)"  # asks whether PyTorch is installed
    code += "; print(nescio.quant.torch.BitSerialLinear.__annotations__['bias'])"
    environment = {"PYTHONPATH": f"{ROOT / 'docs'}:{':'.join(sys.path)}"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, "torch.Tensor | None\n"), run.stderr
