"""Figures of the paper, and the sizes of its tables."""

from typing import NamedTuple

__all__ = ["PUBLISHED", "SIZES", "Published", "Size"]


class Published(NamedTuple):
    """Table 3 of the paper: inferences a second.

    `cpu` is a Xeon Gold 6230 with the library of Google Research. The others are a V100 with the
    paper's code: `eco` has the full quality, `relaxed` loses 0.5 % of the AUC or 5 % of perplexity.
    """

    cpu: float
    eco: float
    relaxed: float


class Size(NamedTuple):
    """A table of rows, and the rows that an inference needs.

    Each inference has `lookups` lookups. `mean` is the number that the paper names, which it
    divides by where it is not an integer. `source` says where the size comes from.
    """

    application: str
    rows: int
    row_bytes: int
    lookups: int
    mean: float
    source: str


PUBLISHED = {
    "movielens": Published(44, 2_821, 5_476),
    "wikitext2": Published(5, 577, 2_306),
    "taobao": Published(8_000, 64_000, 256_000),
}

_SCANNED = "rows scanned"

SIZES = (
    Size("movielens", 27_000, 128, 72, 72, "Table 1"),
    Size("movielens", 131_263, 128, 72, 72, "released code"),
    Size("wikitext2", 131_000, 512, 35, 35, "Table 1"),
    Size("wikitext2", 33_278, 512, 35, 35, "released code"),
    Size("taobao", 900_000, 128, 3, 2.68, "Table 1"),
    Size("taobao", 58_000, 128, 3, 2.68, _SCANNED),
    Size("taobao", 27_000, 128, 3, 2.68, _SCANNED),
)
"""Table 1, the sizes of the released code, and numbers of rows that a Taobao inference may scan.

Table 5 has 3,640 keys a second over 2^20 rows with ChaCha20: 58,000 rows at 64k keys a second, and
14,600 at 256k. So the paper's Taobao figures cannot be scans of 900,000 rows.
"""
