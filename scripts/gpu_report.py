"""Reports what nvcc made of the GPU kernels, and checks it against what is recorded.

    python scripts/gpu_report.py build/cuda-80 build/cuda-90   tables of all kernels
    python scripts/gpu_report.py --check build/cuda-90         spills and occupancy only
    python scripts/gpu_report.py --write build/cuda-90         record the present state

A build folder is one of `make cuda`. scripts/gpu_report.json has, for each architecture and kernel,
the blocks that a multiprocessor must hold at least and the bytes that may be spilled.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from gpu_kernels import Kernel, read_object
from gpu_limits import ARCHITECTURES, CARDS, CASES, blocks_per_processor, launch_shared, predict

RECORD = Path(__file__).with_name("gpu_report.json")
_CLASSES = ("matrix", "popcount", "integer", "multiply", "shared x4", "shared", "global", "other")

# Architecture, then kernel, to its least blocks per multiprocessor and its most spilled bytes.
Record = dict[str, dict[str, list[int]]]


def objects_of(build: Path) -> list[Path]:
    """Returns the objects with kernels in a build folder; exits if it has none."""
    found = [
        path
        for path in sorted(build.rglob("*_cuda.cu.o"))
        if path.with_name(path.name + ".txt").exists()
    ]
    if not found:
        sys.exit(f"gpu_report.py: {build} has no compiled kernels; run: make cuda")
    return found


def problems(kernels: list[Kernel], record: Record) -> list[str]:
    """Returns a line for each spill, lost block, missing kernel and kernel without a record.

    Architectures without any record are left out.
    """
    found = []
    for arch in sorted({kernel.arch for kernel in kernels if str(kernel.arch) in record}):
        known = record[str(arch)]
        own = {kernel.name: kernel for kernel in kernels if kernel.arch == arch}
        for name in sorted(known.keys() | own.keys()):
            where = f"sm_{arch} {name}"
            if name not in own:
                found.append(f"{where}: is recorded, and was not compiled")
            elif name not in known:
                found.append(f"{where}: has no record")
            else:
                found += [f"{where}: {text}" for text in _worse(own[name], *known[name])]
    return found


def _worse(kernel: Kernel, least_blocks: int, most_spills: int) -> list[str]:
    blocks = blocks_per_processor(kernel, ARCHITECTURES[kernel.arch])
    found = []
    if kernel.spills > most_spills:
        found.append(f"spills: found {kernel.spills} bytes, expected at most {most_spills}")
    if blocks < least_blocks:
        found.append(f"blocks per multiprocessor: found {blocks}, expected at least {least_blocks}")
    return found


def record_of(kernels: list[Kernel]) -> Record:
    """Returns the record that these kernels satisfy exactly."""
    record: Record = {}
    for kernel in sorted(kernels, key=lambda k: (k.arch, k.name)):
        blocks = blocks_per_processor(kernel, ARCHITECTURES[kernel.arch])
        record.setdefault(str(kernel.arch), {})[kernel.name] = [blocks, kernel.spills]
    return record


def write(record: Record) -> None:
    """Writes a record, one kernel per line."""
    parts = []
    for arch, kernels in sorted(record.items()):
        lines = [f"    {json.dumps(name)}: {value}" for name, value in sorted(kernels.items())]
        parts.append(f'  "{arch}": {{\n' + ",\n".join(lines) + "\n  }")
    RECORD.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def print_table(head: list[str], rows: list[list[str]]) -> None:
    """Prints a Markdown table with aligned columns."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) + " |")
    print()


def print_kernels(kernels: list[Kernel]) -> None:
    """Prints the kernels of one architecture."""
    limits = ARCHITECTURES[kernels[0].arch]
    source = next(kernel.mix.source for kernel in kernels if kernel.mix)
    print(f"\nsm_{kernels[0].arch}: {limits}; inner loops counted in {source}\n")
    rows = []
    for kernel in sorted(kernels, key=lambda k: k.name):
        loop = kernel.mix.loop if kernel.mix else Counter[str]()
        blocks = blocks_per_processor(kernel, limits)
        sizes = [
            kernel.registers,
            kernel.spills,
            kernel.shared + launch_shared(kernel.name),
            blocks,
        ]
        threads = 100 * blocks * kernel.threads // (32 * limits.warps)
        mix = ", ".join(f"{loop[name]} {name}" for name in _CLASSES if loop[name])
        rows.append([kernel.name, *map(str, sizes), f"{threads} %", mix or "no loop"])
    head = ["kernel", "registers", "spilled", "shared", "blocks", "threads", "inner loop"]
    print_table(head, rows)


def print_predictions(kernels: list[Kernel]) -> None:
    """Prints the predicted times of the cases for which these kernels were compiled."""
    for card in CARDS:
        print(f"{card.name}: {card.source}")
    print("\nBatches of 512 keys, 2^20 rows of 256 bytes, unless the work says otherwise.\n")
    by_name = {kernel.name: kernel for kernel in kernels}
    rows = []
    for case in (case for case in CASES if case.kernel in by_name):
        times = [predict(by_name[case.kernel], case, card) for card in CARDS]
        texts = [f"{1e6 * seconds:.3g} us ({slowest})" for seconds, slowest in times]
        rows.append([case.work, case.kernel, *texts])
    print_table(["work", "kernel", *(card.name for card in CARDS)], rows)


def main() -> int:
    """Returns 1 if a check found problems."""
    parser = argparse.ArgumentParser(description="Report what nvcc made of the GPU kernels.")
    parser.add_argument("builds", nargs="+", type=Path, help="build folders of `make cuda`")
    parser.add_argument("--check", action="store_true", help="compare with scripts/gpu_report.json")
    parser.add_argument("--write", action="store_true", help="write scripts/gpu_report.json")
    options = parser.parse_args()
    brief = options.check or options.write
    kernels = [
        kernel
        for build in options.builds
        for path in objects_of(build)
        for kernel in read_object(path, instructions=not brief)
    ]
    if not kernels:
        sys.exit("gpu_report.py: found no kernels in the output of ptxas (X.o.txt); run: make cuda")
    unknown = sorted({kernel.arch for kernel in kernels} - ARCHITECTURES.keys())
    if unknown and not options.check:
        sys.exit(f"gpu_report.py: found sm_{unknown[0]}, expected one of {[*ARCHITECTURES]}")
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if options.write:
        write(record | record_of(kernels))
        return 0
    if options.check:
        found = problems(kernels, record)
        hint = "\nIf this is intended: python scripts/gpu_report.py --write BUILD" if found else ""
        print(
            "\n".join(found) + hint
            if found
            else f"{sum(str(k.arch) in record for k in kernels)} of {len(kernels)} GPU kernels "
            "have a record; they spill and occupy as recorded"
        )
        return 1 if found else 0
    for arch in sorted({kernel.arch for kernel in kernels}):
        print_kernels([kernel for kernel in kernels if kernel.arch == arch])
    print_predictions([kernel for kernel in kernels if kernel.arch == max(k.arch for k in kernels)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
