"""`nescio size`: the needs of one party."""

import json

import numpy as np
import pytest

import nescio as nescio_package
from commands.conftest import assert_one_sentence, nescio, nescio_here
from nescio.commands.size import Rates, needs, table_bytes
from nescio.pir._rows import RowKind, new_params


def params_of(rows, row_bytes):
    kind = RowKind(rows, (row_bytes,), np.dtype("u1"))
    return new_params(
        kind,
        version="1",
        output="bit",
        generator="chacha20",
        record_rows=None,
        bins=(),
        layout=b"",
    )


@pytest.mark.parametrize(("rows", "row_bytes"), [(1000, 12), (5000, 256), (20_000, 64)])
def test_the_bytes_of_a_table_are_about_right(rows, row_bytes):
    table = nescio_package.Table(np.zeros((rows, row_bytes), np.uint8))
    assert table_bytes(params_of(rows, row_bytes)) == pytest.approx(table.bytes, rel=0.25)


def test_the_needs_follow_from_the_rates():
    params = params_of(1 << 20, 256)
    rates = Rates(expansion=50e-6, product=50e-6, read=20e9, threads=4)
    found = needs(params, rates, queries=10_000, updates=10)
    assert found["processors"] == 6  # 10,000 x 0.35 ms / 0.6
    assert found["pass_seconds"] == table_bytes(params) / 20e9
    assert found["journal_bytes_per_day"] == 10 * (256 + 136) * 86400
    assert found["network_out_bytes_per_second"] == 10_000 * params.verified_answer_bytes
    twice = needs(params, rates, queries=20_000, updates=10)
    assert twice["processors"] == 12
    assert twice["memory_share"] == 2 * found["memory_share"]
    assert twice["memory_bytes"] == found["memory_bytes"]


def test_the_command_prints_its_formulas():
    options = ["--rows", "2^16", "--row-bytes", 64, "--queries-per-second", 100, "--threads", 1]
    found = nescio("size", *options)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0].startswith("one party: 65,536 rows of 64 bytes, 100 rows looked up")
    assert [line.split("  ")[0] for line in lines[2:]] == [
        *("table", "a lookup", "processors", "a pass", "memory bus", "memory", "disk", "network")
    ]
    as_json = json.loads(nescio("size", *options, "--json").stdout)
    assert as_json["processors"] == 1
    assert as_json["rates"]["read"] > 1e6


def test_a_rate_that_is_none():
    options = ["--rows", 10, "--row-bytes", 4, "--queries-per-second"]
    assert_one_sentence(found := nescio_here("size", *options, "nan"))
    assert "--queries-per-second: found nan, expected 0 to 1e9" in found.stderr
