"""The click model: a small network over the rows of an ad, a profile, and a history of ads."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from examples.common.layers import two_layers
from examples.taobao.data import Bools, Integers
from examples.taobao.tables import AD, BRAND, CATEGORY, FIELDS, FIXED, SEGMENT, TABLES, Places

COLUMNS = 32
"""Floats of a row of every table: 128 bytes, as in the paper's Table 1."""

_PRIOR = 2  # empty rows in each mean: few ads say little
_BATCH = 2048
_KINDS = 3  # of rows of an ad: its own, its category's, its brand's

Floats = npt.NDArray[np.float32]


class ClickModel(torch.nn.Module):
    """Predicts if a user clicks an ad: the logit, from rows (n, places) of `Tables.rows`.

    All five tables are the one embedding `features`, so an inference is one lookup. Rows that did
    not fit a private lookup are left out of the means of the history, and zero elsewhere; in
    training, a part of each history is left out, at random. The two layers get the rows of the ad,
    its category and brand, the means of those of the history, the products of both, the profile,
    and its products with the ad and the category. `device="meta"` makes a model without memory
    for the rows.
    """

    def __init__(
        self, rows: int, history: int, dropout: float = 0.5, device: str | None = None
    ) -> None:
        super().__init__()
        self.places = Places(history)
        self.features = torch.nn.Embedding(rows, COLUMNS, device=device)
        torch.nn.init.normal_(self.features.weight, std=0.05)
        self.head = two_layers(3 * _KINDS * COLUMNS + 4 * COLUMNS + _KINDS, dropout)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        """Returns the logits (n,) for rows (n, places)."""
        rows = self.features(places)
        present = self.present(places)
        missing = getattr(self.features, "last_missing", None)  # of a private embedding
        if missing is not None:
            present = present & ~missing[:, FIXED:].unflatten(1, (_KINDS, self.places.history))
        if self.training:
            shape = len(places), 1, self.places.history
            present = present & (torch.rand(shape) >= torch.rand(len(places), 1, 1))
        return self.score(rows, present)

    def present(self, places: torch.Tensor) -> torch.Tensor:
        """Marks the ads, categories and brands of the history that count, (n, 3, history)."""
        used = places[:, self.places.past(AD)] != places[:, CATEGORY, None]
        return used.unsqueeze(1).expand(-1, _KINDS, -1)

    def score(self, rows: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """Returns the logits (n,) for vectors (n, places, columns); `present` is as above."""
        own = rows[:, : BRAND + 1]
        past = rows[:, FIXED:].unflatten(1, (_KINDS, self.places.history))
        weights = present.to(rows.dtype)
        total = torch.matmul(weights.unsqueeze(2), past).squeeze(2)
        mean = total / (weights.sum(2, keepdim=True) + _PRIOR)
        alike = own * mean
        segment, fields = rows[:, SEGMENT], rows[:, FIELDS].sum(1)
        wanted = own[:, CATEGORY] * fields, own[:, AD] * (segment + fields)
        parts = [x.flatten(1) for x in (own, mean, alike, alike.sum(2))]
        scores: torch.Tensor = self.head(torch.cat([*parts, segment, fields, *wanted], dim=1))
        return scores.squeeze(1)


def scores_of(model: ClickModel, rows: Integers, retrieved: Bools | None = None) -> Floats:
    """Returns the logits (n,) for rows (n, places), of which those in `retrieved` arrive (all)."""
    history = model.places.history
    scores = []
    with torch.no_grad():
        for begin in range(0, len(rows), _BATCH):
            places = torch.from_numpy(rows[begin : begin + _BATCH])
            if retrieved is None:
                scores.append(model(places))
                continue
            own = torch.from_numpy(retrieved[begin : begin + _BATCH])
            present = model.present(places) & own[:, FIXED:].unflatten(1, (_KINDS, history))
            scores.append(model.score(model.features(places) * own.unsqueeze(2), present))
    found: Floats = torch.cat(scores).numpy()
    return found


def arrived(rows: Integers, sets: Sequence[Integers], retrieved: Sequence[Bools]) -> Bools:
    """Marks the rows (n, places) of inferences that arrive, of the sets of their rows."""
    inference = np.repeat(np.arange(len(sets)), [len(one) for one in sets])
    keys = (inference << 32) | np.concatenate(sets)
    order = np.argsort(keys)
    wanted = (np.arange(len(rows))[:, None] << 32) | rows
    flags: Bools = np.concatenate(retrieved)[order]
    return flags[np.searchsorted(keys[order], wanted)]


class FiveTables(torch.nn.Module):
    """An embedding in five parts: each table is a module, and called by itself.

    Takes rows (n, places) as the joined embedding does, whose table i begins at `firsts[i]`.
    """

    def __init__(self, firsts: Sequence[int], places: Places, device: str | None = None) -> None:
        super().__init__()
        self.firsts, self.places = list(firsts), places
        sizes = np.diff(self.firsts).tolist()
        self.tables = torch.nn.ModuleDict(
            {
                name: torch.nn.Embedding(size, COLUMNS, device=device)
                for name, size in zip(TABLES, sizes, strict=True)
            }
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Returns the vectors (n, places, columns)."""
        found = torch.empty(*rows.shape, COLUMNS)
        for number, table in enumerate(self.tables.values()):
            found[:, self.places.of_table(number)] = table(self.local(rows, number))
        return found

    def local(self, rows: torch.Tensor, number: int) -> torch.Tensor:
        """Returns the rows of one table, counted from its first.

        An empty place of a history repeats the ad that is scored, its category or brand.
        """
        own = rows[:, self.places.of_table(number)]
        if number < FIXED and own.shape[1] == 1 + self.places.history:
            past = rows[:, self.places.past(0)] != rows[:, CATEGORY, None]
            own = torch.cat([own[:, :1], torch.where(past, own[:, 1:], own[:, :1])], dim=1)
        return own - self.firsts[number]


def with_five_tables(firsts: Sequence[int], history: int, device: str | None = None) -> ClickModel:
    """Makes a click model whose rows come from five tables, one after the other."""
    model = ClickModel(1, history, device=device)
    model.features = FiveTables(firsts, model.places, device)
    model.eval()
    return model
