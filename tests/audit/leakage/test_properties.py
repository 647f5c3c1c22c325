"""Inference of a property of the data from updates."""

import itertools

import pytest

from nescio.errors import ArgumentError

torch = pytest.importorskip("torch")

from nescio.audit._leakage.properties import summed  # noqa: E402
from nescio.audit.leakage import auc, property_scores  # noqa: E402


def coins(seed=0):
    return torch.Generator().manual_seed(seed)


def updates(count, has, seed):
    """Updates of 300 entries, ten of which depend on the property."""
    rows = torch.randn(count, 300, generator=coins(seed))
    rows[:, :10] += 1.0 if has else 0.0
    return rows


def test_auc_is_its_definition():
    scores = torch.tensor([3.0, 1.0, 2.0, 2.0, 0.0])
    has = torch.tensor([True, False, True, False, False])
    pairs = [(a, b) for a, b in itertools.product(scores[has], scores[~has])]
    expected = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)
    assert auc(scores, has) == pytest.approx(expected) == pytest.approx(5.5 / 6)
    with pytest.raises(ArgumentError, match="with and without"):
        auc(scores, torch.zeros(5, dtype=torch.bool))


def test_a_property_shows_in_an_update_and_less_in_a_sum():
    found = []
    for users in (1, 30):
        rows = [
            torch.cat(
                [
                    summed(
                        updates(100, True, seed), updates(100, False, seed + 1), users, coins(2)
                    ),
                    summed(
                        updates(100, False, seed), updates(100, False, seed + 1), users, coins(3)
                    ),
                ]
            )
            for seed in (10, 20)
        ]
        has = torch.arange(200) < 100
        found.append(auc(property_scores(rows[0], has, rows[1]), has))
    assert found[0] > 0.85
    assert found[1] < found[0] - 0.15


def test_without_the_property_there_is_nothing_to_find():
    has = torch.arange(200) < 100
    scores = property_scores(updates(200, False, 1), has, updates(200, False, 2))
    assert 0.35 < auc(scores, has) < 0.65


def test_sums_are_of_as_many_as_they_say():
    rows = summed(torch.full((2, 3), 100.0), torch.ones(5, 3), 4, coins(), times=3)
    assert rows.shape == (6, 3)
    assert (rows == 103).all()


def test_one_kind_of_update_teaches_nothing():
    with pytest.raises(ArgumentError, match="with and without"):
        property_scores(torch.ones(3, 2), torch.ones(3, dtype=torch.bool), torch.ones(1, 2))
