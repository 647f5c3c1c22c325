"""`nescio bench keyed`, on small cases."""

import json

import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here


def test_lookups_of_keys_and_of_rows(tmp_path):
    file = tmp_path / "cases.json"
    sizes = ["--rows", 5000, "--row-bytes", 24, "--batch", "1,9", "--seconds", 0.01]
    found = nescio("bench", "keyed", *sizes, "--generator", "aes128", "--json", file)
    assert found.returncode == 0, found.stderr
    cases = json.loads(file.read_text())
    assert [(case["batch"], case["verified"]) for case in cases] == [
        *((1, False), (1, True)),
        *((9, False), (9, True)),
    ]
    for case in cases:
        assert (case["rows"], case["row_bytes"], case["subtable_rows"]) == (5000, 24, 1852)
        assert case["record_rows"] == 16  # of 32 bytes
        assert case["answer_bytes"] >= 3 * 512
        rates = case["lookups_per_second"] / case["plain_lookups_per_second"]
        assert case["share_of_plain"] == pytest.approx(rates)
        assert case["lookups_per_second"] == pytest.approx(
            case["batch"] / case["milliseconds"] * 1e3
        )
        assert all(case[name] > 0 for name in ("build_seconds", "times_limit", "key_bytes"))
    assert len(found.stdout.splitlines()) == 1 + 4 + 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", 10], "keys: found 10, expected 50 to"),
        (["--row-bytes", 0], "bytes of a value: found 0, expected 1 to"),
        (["--batch", "0"], "batch: found 0, expected 1 to"),
        (["--seconds", 0], "seconds: found 0"),
        (["--rows", "2^38", "--row-bytes", 64], "bytes of all values: found"),
    ],
)
def test_sizes_that_are_refused(options, message):
    refused = nescio_here("bench", "keyed", *options)
    assert_one_sentence(refused)
    assert message in refused.stderr
