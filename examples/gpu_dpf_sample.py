"""A private lookup through GPU-DPF's interface: one client, two servers, one secret row.

    pip install 'nescio[compat]'
    python examples/gpu_dpf_sample.py

Each server uses a GPU if it has one, and the CPU otherwise.
"""

import torch

from nescio.compat import gpu_dpf as dpf
from nescio.errors import ResourceError

ROWS, COLUMNS = 10_000, 8


class Server:
    """One of two servers with the same table; different, non-colluding operators run them."""

    def __init__(self, table: torch.Tensor) -> None:
        self._dpf = dpf.DPF()
        self._dpf.eval_init(table)

    def answer(self, key: torch.Tensor) -> torch.Tensor:
        """Answers a key with a share of its row: int32 of shape (COLUMNS,)."""
        try:
            shares = self._dpf.eval_gpu([key])
        except ResourceError:
            shares = self._dpf.eval_cpu([key])
        return shares[0]


def look_up(row: int, servers: tuple[Server, Server]) -> torch.Tensor:
    """Looks up a row; neither server learns its index."""
    keys = dpf.DPF().gen(row, ROWS)
    a, b = (server.answer(key) for server, key in zip(servers, keys, strict=True))
    return a - b


def main() -> None:
    """Looks up a secret row and checks it against the table."""
    table = torch.randint(-(2**31), 2**31, (ROWS, COLUMNS)).int()
    secret = int(torch.randint(ROWS, ()))
    row = look_up(secret, (Server(table), Server(table)))
    assert torch.equal(row, table[secret])
    print(f"row {secret}: {row.tolist()}")


if __name__ == "__main__":
    main()
