"""Columns without counts."""

import numpy as np
import pytest

from audit.records import Run
from nescio import audit
from nescio.audit._attack.ica import match


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_columns_are_found_without_counts(noise):
    run = Run(30, 240, 4000, noise=noise, seed=1)
    result = audit.disaggregate(run.aggregates, users=30)
    assert not result.labelled
    assert not result.unique.any()
    found = {column.tobytes() for column in result.participation.T.copy()}
    assert found == {column.tobytes() for column in run.participation.T.copy()}


def test_columns_found_without_counts_get_names_from_counts():
    run = Run(30, 240, seed=2)
    counts = run.counts.copy()
    counts[:, 4:] = -1
    result = audit.disaggregate(
        run.aggregates, run.windows, counts, 30, method="skewness", threads=1
    )
    assert result.labelled
    assert run.right(result).mean() > 0.5
    assert run.right(result)[result.unique].all()


def test_too_few_rounds_are_not_enough():
    run = Run(30, 60, seed=3)
    result = audit.disaggregate(run.aggregates, users=30)
    true = {column.tobytes() for column in run.participation.T.copy()}
    for column, certificate in zip(result.participation.T.copy(), result.certificates, strict=True):
        if certificate.status == "not found":
            continue
        assert column.tobytes() in true or not certificate.failure < 1


def test_a_matching_makes_room():
    """The first user fits both columns, the second only the first: both get one."""
    columns = np.array([[1, 0, 1, 0, 0], [1, 0, 0, 1, 0]], np.uint8)
    sums = np.arange(35.0).reshape(5, 7) ** 1.5
    record = audit.Log(sums, 2, [(0, 2), (2, 3)], np.array([[1, -1], [1, 1]]))
    assert match(record, columns, np.arange(2)).tolist() == [1, 0]
    assert match(record, columns[:1], np.arange(2)).tolist() in ([0], [1])


def test_one_user_who_takes_part_in_all_rounds():
    sums = np.ones((8, 1)) * np.eye(1, 6)
    result = audit.disaggregate(sums, users=1, method="skewness")
    assert not result.found.any()
