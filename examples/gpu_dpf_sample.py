"""A private lookup through GPU-DPF's interface: one client, two servers, one secret row.

    pip install 'nescio[compat]'
    python examples/gpu_dpf_sample.py

Each server works on a GPU if it has one, and on its processor if it has none.
"""

import torch

from nescio.compat import gpu_dpf as dpf
from nescio.errors import ResourceError

ROWS, COLUMNS = 10_000, 8


class Server:
    """One of two servers that hold the same table, run by people who do not talk to each other."""

    def __init__(self, table: torch.Tensor) -> None:
        self._dpf = dpf.DPF()
        self._dpf.eval_init(table)

    def answer(self, key: torch.Tensor) -> torch.Tensor:
        """A share of the row that the key is for: int32 of shape (COLUMNS,)."""
        try:
            shares = self._dpf.eval_gpu([key])
        except ResourceError:
            shares = self._dpf.eval_cpu([key])
        return shares[0]


def look_up(row: int, servers: tuple[Server, Server]) -> torch.Tensor:
    """The row, of which neither server learns the number."""
    keys = dpf.DPF().gen(row, ROWS)
    a, b = (server.answer(key) for server, key in zip(servers, keys, strict=True))
    return a - b


def main() -> None:
    """Looks a secret row up and checks it against the table."""
    table = torch.randint(-(2**31), 2**31, (ROWS, COLUMNS)).int()
    secret = int(torch.randint(ROWS, ()))
    row = look_up(secret, (Server(table), Server(table)))
    assert torch.equal(row, table[secret])
    print(f"row {secret}: {row.tolist()}")


if __name__ == "__main__":
    main()
