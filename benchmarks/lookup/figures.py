"""The declarations of the paper's figures and tables on GPUs.

The paper is Lam et al., "GPU-based Private Information Retrieval for On-Device Machine Learning
Inference" (2024). run.py measures what FIGURES declares, and plot.py plots it.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from nescio.bench.gpu_case import Spec
from nescio.bench.lookup_gpu import walks
from nescio.dpf import GENERATORS, Generator, Output
from nescio.pir._device_table import DEFAULT_NODES, Strategy

__all__ = ["FIGURES", "MEASURED", "NO_MEMORY", "NO_TIME", "Figure", "Line", "Sizes"]

MEASURED = "measured"
NO_MEMORY = "out of memory"
NO_TIME = "out of time"


class Line(NamedTuple):
    """A curve: the strategy of the walk, and the output and generator of the keys.

    The paper's leaves have 128 bits for each row (u128). The default output of this engine is
    "bit".
    """

    strategy: Strategy
    output: Output
    generator: Generator = "aes128"


class Sizes(NamedTuple):
    """The sizes that are combined with every line of a figure."""

    rows: tuple[int, ...]
    row_bytes: tuple[int, ...]
    batch: tuple[int, ...]
    nodes: tuple[int, ...] = (DEFAULT_NODES,)


class Figure(NamedTuple):
    """A figure or table: the fields `y` against the field `x`, a panel per value of `panels`."""

    name: str
    title: str
    lines: tuple[Line, ...]
    full: Sizes
    quick: Sizes
    x: str  # "line": a bar for each line
    y: tuple[str, ...]
    panels: str = "row_bytes"

    def specs(self, *, quick: bool) -> Iterator[Spec]:
        """Yields the cases; cases with the same table, or the same server, are adjacent."""
        sizes = self.quick if quick else self.full
        for rows, row_bytes, line in product(sizes.rows, sizes.row_bytes, self.lines):
            for walk, batch in product(walks([line.strategy], sizes.nodes), sorted(sizes.batch)):
                yield Spec(rows, row_bytes, line.output, line.generator, *walk, batch)


_FUSED = Line("bounded", "u128")  # the paper's own design
_WHOLE_CARD = Line("cooperative", "u128")  # the paper's design for its largest tables
_OURS = Line("auto", "bit")
_PAPERS = (Line("branch", "u128"), Line("level", "u128"), _FUSED, _WHOLE_CARD)
_RATE, _LATENCY, _USE = "queries_per_second", "milliseconds", "utilisation"
_CALLS, _MEMORY = "prf_calls", "peak_device_bytes"
_K, _M = 1 << 10, 1 << 20
_TINY = Sizes((512,), (8,), (2, 4))

# In the order of measurement, the most informative first.
FIGURES = (
    Figure(
        "table-5",
        "Table 5: generators, the paper's design (u128, bounded) and this engine's (bit, auto)",
        (
            *(Line("bounded", "u128", generator) for generator in GENERATORS),
            *(Line("auto", "bit", generator) for generator in GENERATORS),
        ),
        full=Sizes((_M,), (256,), (512,)),
        quick=Sizes((512,), (8,), (4,)),
        x="line",
        y=(_RATE, _USE),
    ),
    Figure(
        "figure-13",
        "Figure 13: throughput against latency of each strategy, over batch sizes",
        (*_PAPERS, Line("auto", "u128"), _OURS),
        full=Sizes((16 * _K, _M, 4 * _M), (256,), (1, 16, 128, 512)),
        quick=_TINY,
        x=_LATENCY,
        y=(_RATE,),
        panels="rows",
    ),
    Figure(
        "figure-8",
        "Figure 8: memory and throughput of the memory-bounded walk against K",
        (_FUSED,),
        full=Sizes((_M,), (256,), (64, 512), (64, 128, 256, 512)),
        quick=Sizes((512,), (8,), (2, 4), (64, 128, 256, 512)),
        x="nodes",
        y=(_MEMORY, _RATE),
        panels="batch",
    ),
    Figure(
        "figure-9a",
        "Figure 9a: throughput and utilisation against the batch",
        (_FUSED, _OURS),
        full=Sizes((_M,), (256,), (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096)),
        quick=_TINY,
        x="batch",
        y=(_RATE, _USE),
    ),
    Figure(
        "figure-9b",
        "Figure 9b: throughput and utilisation against the table's rows, batches and single keys",
        (_FUSED, _WHOLE_CARD, _OURS),
        full=Sizes((16 * _K, 64 * _K, 256 * _K, _M, 4 * _M, 16 * _M), (64,), (1, 512)),
        quick=Sizes((256, 512), (8,), (1, 4)),
        x="rows",
        y=(_RATE, _USE),
        panels="batch",
    ),
    Figure(
        "figure-6",
        "Figure 6: calls of the generator and memory of each strategy against the table's rows",
        (*_PAPERS, _OURS),
        full=Sizes((4 * _K, 16 * _K, 64 * _K, 256 * _K, _M, 4 * _M), (64,), (512,)),
        quick=Sizes((256, 512), (8,), (4,)),
        x="rows",
        y=(_CALLS, _MEMORY),
    ),
    Figure(
        "figure-14",
        "Figure 14: length of the rows, walk and product fused (bounded) and not (level)",
        (_FUSED, Line("level", "u128"), _OURS),
        full=Sizes((_M,), (64, 128, 256, 512, 1024, 2048), (256,)),
        quick=Sizes((512,), (8, 16), (4,)),
        x="row_bytes",
        y=(_RATE, _LATENCY),
        panels="rows",
    ),
    Figure(
        "table-4",
        "Table 4: rows of 2,048 bytes",
        (_FUSED, _WHOLE_CARD, _OURS),
        full=Sizes((16 * _K, _M, 4 * _M), (2048,), (2, 512)),
        quick=Sizes((256, 512), (16,), (2,)),
        x="batch",
        y=(_RATE, _LATENCY),
        panels="rows",
    ),
)
