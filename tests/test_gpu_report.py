"""The report of the GPU kernels, on recorded output of nvcc 13.0: it notices what got worse."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"

PRODUCT = "_ZN6nescio3gpu10run_kernelINS_3pir13MatrixProductINS2_5BitOpELj4ELj2ELj2EEEEEvT_"
REPLACE = "_ZN6nescio3gpu10run_kernelINS_3pir11ReplaceRowsEEEvT_"

PTXAS = f"""ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{PRODUCT}' for 'sm_90'
ptxas info    : Function properties for {PRODUCT}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 224 registers, used 1 barriers
ptxas info    : Compile time = 93.614 ms
ptxas info    : Compiling entry function '{REPLACE}' for 'sm_90'
ptxas info    : Function properties for {REPLACE}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 22 registers, used 0 barriers
ptxas info    : Compile time = 11.335 ms
"""

PTX = f"""\x00\x01.version 9.0
.target sm_90
.visible .entry {PRODUCT}(
.param .align 8 .b8 {PRODUCT}_param_0[96]
)
.maxntid 128, 1, 1
.minnctapersm 1
{{
.reg .pred %p<4>;
mov.u32 %r1, %ctaid.x;
$L__BB0_2:
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r2, %r3, %r4, %r5}}, [%r6];
mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {{%r7, %r8}}, {{%r2}}, {{%r3}}, {{%r7}};
mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {{%r9, %r8}}, {{%r2}}, {{%r3}}, {{%r9}};
add.s32 %r6, %r6, 64;
@%p1 bra $L__BB0_2;
xor.b32 %r7, %r7, %r9;
ret;
}}
.visible .entry {REPLACE}(
.param .align 8 .b8 {REPLACE}_param_0[56]
)
.maxntid 128, 1, 1
{{
mov.u32 %r1, %ctaid.x;
ret;
}}
\x00"""

SASS = f"""		Function : {PRODUCT}
        /*0000*/                   LDC R1, c[0x0][0x28] ;              /* 0x00000a00ff017b82 */
        /*0010*/                   LDSM.16.M88.4 R64, [R184+UR5] ;     /* 0x000000000000783b */
        /*0020*/                   BMMA.168256.AND.POPC R24, R64.reuse.ROW, R20.COL, R24 ; /* */
        /*0030*/                   BMMA.168256.AND.POPC R28, R64.reuse.ROW, R20.COL, R28 ; /* */
        /*0040*/                   BMMA.168256.AND.POPC R32, R64.reuse.ROW, R20.COL, R32 ; /* */
        /*0050*/              @!P0 IMAD.IADD R3, R3, 0x1, R195 ;       /* 0x000000011c038824 */
        /*0060*/              @!P0 BRA 0x10 ;                          /* 0xfffffff000008947 */
        /*0070*/                   LOP3.LUT R3, R3, 0x1, RZ, 0xc0, !PT ; /* 0x0000000103037812 */
        /*0080*/                   EXIT ;                              /* 0x000000000000794d */
        /*0090*/                   BRA 0x90;                           /* 0xfffffffc00fc7947 */
"""


@pytest.fixture
def report(tmp_path):
    """Runs the report on a build of the sample, changed by replacing `old` by `new`."""
    if shutil.which("c++filt") is None:
        pytest.skip("needs c++filt")
    folder = tmp_path / "scripts"
    folder.mkdir()
    for path in SCRIPTS.glob("gpu_*.py"):
        shutil.copy(path, folder)
    build = tmp_path / "build"
    build.mkdir()

    def run(*options, old="", new="", path=None):
        (build / "answer_cuda.cu.o").write_bytes(PTX.encode())
        text = PTXAS.replace(old, new) if old else PTXAS
        (build / "answer_cuda.cu.o.txt").write_text(text)
        command = [sys.executable, folder / "gpu_report.py", *options, build]
        env = os.environ | {"PATH": f"{path or tmp_path}:/usr/bin:/bin"}
        return subprocess.run(command, capture_output=True, text=True, env=env)

    assert run("--write").returncode == 0
    return run


def test_the_recorded_kernels_pass(report):
    found = report("--check")
    text = "2 of 2 GPU kernels have a record; they spill and occupy as recorded\n"
    assert (found.returncode, found.stdout) == (0, text)


def test_a_spill_is_noticed(report):
    found = report(
        "--check",
        old="0 bytes spill loads\nptxas info    : Used 22",
        new="8 bytes spill loads\nptxas info    : Used 22",
    )
    assert found.returncode == 1
    assert "sm_90 ReplaceRows: spills: found 8 bytes, expected at most 0" in found.stdout


def test_lost_occupancy_is_noticed(report):
    found = report(
        "--check",
        old="Used 224 registers, used 1",
        new="Used 224 registers, used 1 barriers, 70000 bytes smem, used 1",
    )
    assert found.returncode == 1
    name = "sm_90 MatrixProduct<BitOp, 4, 2, 2>"
    assert f"{name}: blocks per multiprocessor: found 1, expected at least 2" in found.stdout
    assert "ReplaceRows" not in found.stdout


def test_a_missing_kernel_and_a_new_one_are_noticed(report):
    second = PTXAS[PTXAS.index("ptxas info    : Compiling entry function '" + REPLACE) :]
    found = report("--check", old=second)
    assert found.returncode == 1
    assert "sm_90 ReplaceRows: is recorded, and was not compiled" in found.stdout
    report("--write", old=second)
    found = report("--check")
    assert found.returncode == 1
    assert "sm_90 ReplaceRows: has no record" in found.stdout


def test_a_build_without_kernels(tmp_path):
    command = [sys.executable, SCRIPTS / "gpu_report.py", "--check", tmp_path]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 1
    assert "has no compiled kernels; run: make cuda" in found.stderr


def test_output_in_which_no_kernel_is_found(report):
    found = report("--check", old="Compiling entry function", new="Compiling kernel")
    assert found.returncode == 1
    assert "found no kernels in the output of ptxas" in found.stderr


def test_an_architecture_without_limits(report):
    assert report("--check", old="'sm_90'", new="'sm_89'").stdout.startswith("0 of 2 GPU kernels")
    found = report(old="'sm_90'", new="'sm_89'")
    assert (found.returncode, "found sm_89, expected one of [75, 80, 90]" in found.stderr) == (
        1,
        True,
    )


def row(found, name):
    (line,) = [line for line in found.stdout.splitlines() if line.startswith(f"| {name} ")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_of_kernels(report):
    found = report()
    assert "inner loops counted in PTX" in found.stdout
    # 224 registers, 48 KB of shared memory, two blocks of 128 threads among 2,048.
    mix = "2 matrix, 1 integer, 1 shared x4, 1 other"
    assert row(found, "MatrixProduct<BitOp, 4, 2, 2>")[1:] == [
        "224",
        "0",
        "49152",
        "2",
        "12 %",
        mix,
    ]
    assert row(found, "ReplaceRows")[1:] == ["22", "0", "0", "16", "100 %", "no loop"]
    assert row(found, "product, bits")[2].endswith("us (cache)")


def test_instructions_of_machine_code(report, tmp_path):
    tool = tmp_path / "tools" / "cuobjdump"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{SASS}END\n")
    tool.chmod(0o755)
    found = report(path=tool.parent)
    assert "inner loops counted in SASS" in found.stdout
    mix = "3 matrix, 1 multiply, 1 shared x4, 1 other"
    assert row(found, "MatrixProduct<BitOp, 4, 2, 2>")[-1] == mix


@pytest.mark.parametrize("code", [0, 3])
def test_the_messages_of_a_compiler_are_kept(code, tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{PTXAS}a warning\nEND\nexit {code}\n")
    compiler.chmod(0o755)
    output = tmp_path / "a.o"
    command = [sys.executable, SCRIPTS / "keep_output.py", compiler, "-c", "a.cu", "-o", output]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == code
    if code == 0:
        assert found.stderr == "a warning\n"
        assert (tmp_path / "a.o.txt").read_text() == PTXAS + "a warning\n"
    else:
        assert "Used 224 registers" in found.stderr
