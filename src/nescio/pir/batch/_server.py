"""The server of a batch table."""

from collections.abc import Sequence

from ...errors import ArgumentError
from .._server import Server
from ._table import BatchTable


class BatchServer(Server):
    """Answers lookups of a batch table as one of two parties: a `nescio.Server` of its table.

    The other arguments are those of `nescio.Server`. The service serves it under a name, like any
    other server. Raises ArgumentError for another table.
    """

    def __init__(
        self,
        table: BatchTable,
        *,
        threads: int = 0,
        party: int | None = None,
        device: str = "auto",
        devices: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(table, BatchTable):
            raise ArgumentError(
                f"table: found {type(table).__name__}, expected a BatchTable; "
                "nescio.pir.batch.build makes one"
            )
        super().__init__(table.table, threads=threads, party=party, device=device, devices=devices)
        self.batch_table = table
