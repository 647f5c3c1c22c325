"""Reads the kernels of an object that nvcc compiled: registers, spills, threads, instructions.

Registers and spills are what `ptxas -v` printed, which scripts/keep_output.py has kept next to the
object. Threads of a block come from the PTX in the object. Instructions come from `cuobjdump -sass`
where that is installed, and otherwise from the PTX.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?, (\d+) bytes smem)?")
_THREADS = re.compile(r"\.entry (\w+)\(.*?\.maxntid (\d+)", re.DOTALL)
_SASS = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ +)?([A-Z][\w.]*)([^;]*);")
_PTX = re.compile(r"^\s*(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s*([^;]*);|^(\$\w+):", re.MULTILINE)

# The first class whose pattern an instruction begins with, in SASS or in PTX.
_CLASSES = (
    ("matrix", r"BMMA|IMMA|mma\."),
    ("popcount", r"POPC|popc"),
    ("shared x4", r"LDSM.*\.4|ldmatrix\..*x4"),
    ("shared", r"LDS|STS|ld\.shared|st\.shared|ldmatrix"),
    ("global", r"LDG|STG|LDGSTS|ATOM|RED|ld\.global|st\.global|cp\.async\.c|atom|red\."),
    ("multiply", r"IMAD|mad\.|mul\."),
    (
        "integer",
        r"LOP3|IADD|SHF|PRMT|ISETP|LEA|SEL|VOTE|SHFL|MOV|IMNMX|VIADD|PLOP|and\.|or\.|xor\.|"
        r"not\.|lop3|add\.|sub\.|shf|shl|shr|prmt|setp|selp|mov\.|min\.|max\.|vote|shfl",
    ),
)


@dataclass
class Mix:
    """Instructions of a kernel, and those of its inner loop, by class."""

    source: str  # "SASS" or "PTX"
    all: Counter[str] = field(default_factory=Counter)
    loop: Counter[str] = field(default_factory=Counter)


@dataclass
class Kernel:
    """A kernel as it was compiled for one architecture."""

    name: str
    arch: int
    registers: int
    stack: int
    spills: int  # bytes stored and loaded
    shared: int  # bytes, without those that a launch adds
    threads: int = 0
    mix: Mix | None = None


def demangled(names: list[str]) -> dict[str, str]:
    """Returns short names: `MatrixProduct<BitOp, 4, 2, 2>` for the kernel that runs it."""
    filter_names = [shutil.which("c++filt") or "c++filt"]
    done = subprocess.run(
        filter_names, input="\n".join(names), capture_output=True, text=True, check=True
    )
    short = {}
    for mangled, full in zip(names, done.stdout.splitlines(), strict=True):
        found = re.fullmatch(r"void nescio::gpu::run_kernel<(.*?) ?>\(.*", full)
        name = re.sub(r"(\w+::)+|(?<=\d)u\b", "", found[1] if found else full)
        name = re.sub(r"CoreGpu<\(GeneratorId\)\d, (\w+(<\d+>)?) ?>", r"\1", name)
        short[mangled] = name.replace(" >", ">")
    return short


def parse_ptxas(text: str) -> list[Kernel]:
    """Returns the kernels that `ptxas -v` described, under their mangled names."""
    kernels: list[Kernel] = []
    for line in text.splitlines():
        if found := _ENTRY.search(line):
            kernels.append(Kernel(found[1], int(found[2]), 0, 0, 0, 0))
        elif kernels and (found := _SPILLS.search(line)):
            kernels[-1].stack = int(found[1])
            kernels[-1].spills = int(found[2]) + int(found[3])
        elif kernels and (found := _USED.search(line)):
            kernels[-1].registers, kernels[-1].shared = int(found[1]), int(found[2] or 0)
    return kernels


def ptx_of(data: bytes) -> str:
    """Returns the PTX in an object, which `nvcc --no-compress` stores as text."""
    parts = re.findall(rb"\.version \d.*?\0", data, re.DOTALL)
    return "\n".join(part.rstrip(b"\0").decode(errors="replace") for part in parts)


def read_object(path: Path, *, instructions: bool = True) -> list[Kernel]:
    """Returns the kernels of an object under short names.

    `instructions` also counts their instructions, which takes some seconds.
    """
    kernels = parse_ptxas(path.with_name(path.name + ".txt").read_text())
    ptx = ptx_of(path.read_bytes())
    threads = {name: int(count) for name, count in _THREADS.findall(ptx)}
    mixes = (sass_mixes(path) or ptx_mixes(ptx)) if instructions else {}
    short = demangled([kernel.name for kernel in kernels])
    for kernel in kernels:
        kernel.threads = threads[kernel.name]
        kernel.mix = mixes.get(kernel.name)
        kernel.name = short[kernel.name]
    return kernels


def class_of(instruction: str) -> str:
    """Returns the class of an instruction, or "other"."""
    return next((name for name, begin in _CLASSES if re.match(begin, instruction)), "other")


Instruction = tuple[int, str, int | None]  # address, name, target of a branch


def count(instructions: list[Instruction], source: str) -> Mix:
    """Counts the instructions of a kernel, and those of its inner loop.

    That is the smallest loop with matrix instructions or population counts, or else the largest
    loop without a loop in it.
    """
    begin, end = _inner_loop(instructions)
    mix = Mix(source)
    for at, name, _ in instructions:
        if name in ("NOP", "ret"):
            continue
        mix.all[class_of(name)] += 1
        if begin <= at <= end:
            mix.loop[class_of(name)] += 1
    return mix


def _inner_loop(instructions: list[Instruction]) -> tuple[int, int]:
    loops = {(to, at) for at, _, to in instructions if to is not None and to < at}
    products = [at for at, name, _ in instructions if class_of(name) in ("matrix", "popcount")]
    with_products = [a for a in loops if any(a[0] <= at <= a[1] for at in products)]
    if with_products:
        return min(with_products, key=lambda loop: loop[1] - loop[0])
    inner = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    return max(inner, key=lambda loop: loop[1] - loop[0], default=(0, -1))


def sass_mixes(path: Path) -> dict[str, Mix]:
    """Returns the mixes of an object's kernels by cuobjdump; nothing if it is not installed."""
    cuobjdump = shutil.which("cuobjdump")
    if cuobjdump is None:
        return {}
    command = [cuobjdump, "-sass", str(path)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(_sass(listing))


def _sass(listing: str) -> Iterator[tuple[str, Mix]]:
    for part in listing.split("Function : ")[1:]:
        instructions: list[Instruction] = []
        for at, name, rest in _SASS.findall(part):
            target = re.search(r"0x([0-9a-f]+)", rest) if name.startswith("BRA") else None
            instructions.append((int(at, 16), name, int(target[1], 16) if target else None))
        yield part.split(maxsplit=1)[0], count(instructions, "SASS")


def ptx_mixes(ptx: str) -> dict[str, Mix]:
    """Returns the mixes of the kernels in PTX, whose loops ptxas may still unroll."""
    mixes = {}
    for part in ptx.split(".entry ")[1:]:
        lines = [m for m in _PTX.finditer(part) if not (m[1] or "").startswith(".")]
        labels = {m[3]: i for i, m in enumerate(lines) if m[3]}
        instructions: list[Instruction] = [
            (i, m[1], labels.get(m[2].strip()) if m[1].startswith("bra") else None)
            for i, m in enumerate(lines)
            if m[1]
        ]
        mixes[part[: part.index("(")]] = count(instructions, "PTX")
    return mixes
