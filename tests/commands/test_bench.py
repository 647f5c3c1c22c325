"""`nescio bench`, on small cases: what it prints, what it writes, what it refuses."""

import json

import pytest

from commands.conftest import assert_one_sentence, nescio
from nescio import _core
from nescio.bench import limits

LOOKUP_FIELDS = {
    *("rows", "row_bytes", "batch", "threads", "tier", "device", "generator", "output"),
    *("queries_per_second", "milliseconds", "table_gb_per_second", "limit_queries_per_second"),
    *("key_bytes", "answer_bytes", "peak_bytes"),
}


def test_every_combination_of_a_lookup_is_a_case(tmp_path):
    sizes = ["--rows", "100,3000", "--row-bytes", 24, "--batch", "1,9", "--threads", "1,2"]
    sizes += ["--seconds", 0.01]
    kinds = ["--output", "bit,u32", "--generator", "aes128", "--tier", "portable"]
    found = nescio("bench", "lookup", *sizes, *kinds, "--json", tmp_path / "cases.json")
    assert found.returncode == 0, found.stderr
    cases = json.loads((tmp_path / "cases.json").read_text())
    assert len(cases) == 16
    assert len({(c["rows"], c["batch"], c["threads"], c["output"]) for c in cases}) == 16
    for case in cases:
        assert set(case) >= LOOKUP_FIELDS
        assert (case["tier"], case["device"], case["generator"]) == ("portable", "cpu", "aes128")
        rate = case["batch"] / case["milliseconds"] * 1e3
        assert case["queries_per_second"] == pytest.approx(rate)
        covered = rate * case["rows"] * case["row_bytes"] / 1e9
        assert case["table_gb_per_second"] == pytest.approx(covered)
        assert case["limit_queries_per_second"] > 0
        assert case["peak_bytes"] < 64 << 20
    assert len(found.stdout.splitlines()) == 1 + 16 + 6
    assert "queries/s" in found.stdout.splitlines()[0]


def test_limits_of_the_kernels_and_of_the_machine(tmp_path):
    """The portable kernel has no figure of its instructions."""
    tiers = ["portable", *(t for t in _core.supported_tiers() if t != "portable")]
    found = nescio(
        *("bench", "lookup", "--rows", 1000, "--row-bytes", 64, "--batch", 8),
        *("--tier", ",".join(tiers), "--generator", "aes128,chacha20", "--output", "bit,u8,u32"),
        *("--seconds", 0.01, "--json", tmp_path / "cases.json"),
    )
    assert found.returncode == 0, found.stderr
    heading = found.stdout.splitlines()[0]
    assert all(name in heading for name in ("loops ms", "issue ms", "x loops", "x machine"))
    for case in json.loads((tmp_path / "cases.json").read_text()):
        issue, compute = case["issue_milliseconds"], case["compute_milliseconds"]
        assert (issue is None) == (case["tier"] == "portable")
        if issue is not None:
            assert 0 < issue < 20 * compute
            limit = max(issue, case["pass_milliseconds"])
            assert case["times_machine"] == pytest.approx(case["milliseconds"] / limit)


def test_the_instructions_of_a_lookup_are_counted(monkeypatch):
    """For 2^20 rows of 256 bytes, as docs/performance.md counts them."""
    asked = []
    monkeypatch.setattr(
        limits._core, "issue", lambda *of: asked.append(of) or (0 if "portable" in of else 64, 1.0)
    )
    rows, table = 1 << 20, 256 << 20
    assert limits.issue_seconds(rows, "bit", "aes128", "avx512") == 12286 * 10 / 4
    assert limits.issue_seconds(rows, "bit", "chacha20", "avx512") == 2731 * 20 * 16 / 16
    assert limits.issue_seconds(rows, "bit", "sha256", "avx512") is None
    assert limits.product_issue_seconds(table, 256, "bit", "avx512") == 256 * 524288
    assert limits.product_issue_seconds(table, 1, "bit", "avx512") == table / 64
    assert limits.product_issue_seconds(table, 3, "u32", "avx512") == 3 * table / 64
    assert limits.product_issue_seconds(table, 3, "u128", "avx512") is None
    assert limits.product_issue_seconds(table, 3, "bit", "portable") is None
    assert {of[0] for of in asked} == {"aes", "words", "bit", "u32"}


def test_a_plot(tmp_path):
    path = tmp_path / "lookup.png"
    found = nescio(
        "bench", "lookup", "--rows", 1000, "--batch", "1,4", "--plot", path, "--seconds", 0.01
    )
    assert found.returncode == 0, found.stderr
    assert path.read_bytes().startswith(b"\x89PNG\r\n")


def test_the_peak_holds_the_table_once(tmp_path):
    found = nescio(
        *("bench", "lookup", "--rows", 1 << 17, "--row-bytes", 512, "--batch", "1,300"),
        *("--generator", "aes128", "--json", tmp_path / "cases.json"),
    )
    assert found.returncode == 0, found.stderr
    for case in json.loads((tmp_path / "cases.json").read_text()):
        assert case["table_bytes"] == 64 << 20
        assert case["peak_bytes"] + (8 << 20) >= 64 << 20
        assert case["peak_bytes"] < (64 << 20) + (64 << 20)


def test_keys(tmp_path):
    options = ["--rows", "1000", "--json", tmp_path / "cases.json", "--output", "bit,u8"]
    found = nescio("bench", "dpf", *options)
    assert found.returncode == 0, found.stderr
    cases = json.loads((tmp_path / "cases.json").read_text())
    assert {(c["generator"], c["output"]) for c in cases} == {
        (generator, output) for generator in ("aes128", "chacha20") for output in ("bit", "u8")
    }


@pytest.mark.parametrize("bins", [1, 8])
def test_the_service(tmp_path, bins):
    found = nescio(
        *("bench", "service", "--rows", 5000, "--row-bytes", 40, "--clients", 3, "--batch", 5),
        *("--bins", bins),
        *("--seconds", 0.5, "--json", tmp_path / "case.json"),
    )
    assert found.returncode == 0, found.stderr
    (case,) = json.loads((tmp_path / "case.json").read_text())
    assert case["requests"] > 0
    assert case["bins"] == bins
    assert case["queries_per_second"] == pytest.approx(case["requests"] * 5 / 0.5)
    share = case["queries_per_second"] / case["engine_queries_per_second"]
    assert case["share_of_engine"] == pytest.approx(share)


def test_the_service_by_clients_and_rows(tmp_path):
    found = nescio(
        *("bench", "service", "--rows", 5000, "--row-bytes", 40, "--clients", 2),
        *("--rows-per-request", "1,4", "--load", 0.5, "--seconds", 0.5),
        *("--json", tmp_path / "cases.json"),
    )
    assert found.returncode == 0, found.stderr
    cases = json.loads((tmp_path / "cases.json").read_text())
    measured = [(case["clients"], case["batch"], case.get("load")) for case in cases]
    assert measured == [(2, r, load) for r in (1, 4) for load in (None, 0.5)]
    assert all(case["requests"] > 0 and case["p99_passes"] > 0 for case in cases)


def test_lookups_beside_updates(tmp_path):
    found = nescio(
        *("bench", "updates", "--rows", 5000, "--row-bytes", 40, "--clients", 3),
        *("--updated-rows", 20, "--seconds", 1.5, "--json", tmp_path / "cases.json"),
    )
    assert found.returncode == 0, found.stderr
    alone, beside = json.loads((tmp_path / "cases.json").read_text())
    assert alone["updates"] == 0 < beside["updates"]
    assert alone["refused"] == beside["refused"] == 0
    rates = [case["queries_per_second"] for case in (alone, beside)]
    assert beside["kept"] == pytest.approx(rates[1] / rates[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["updates", "--updates", 0], "updates: found 0"),
        (["dpf", "--threads", -1], "threads: found -1"),
        (["dpf", "--rows", 0], "rows: found 0"),
        (["lookup", "--batch", "4,0"], "batch: found 0"),
        (["lookup", "--row-bytes", -5], "row bytes: found -5"),
        (["lookup", "--rows", 10**12, "--row-bytes", 10**6], "table: found 1000000000"),
        (["lookup", "--rows", 10, "--batch", 1, "--json", "/no/such/folder/x"], "/no/such/folder"),
        (["lookup", "--rows", 10, "--batch", 1, "--plot", "/no/such/folder/x"], "/no/such/folder"),
        (["service", "--seconds", "nan"], "seconds: found nan"),
        (["lookup", "--seconds", 0], "seconds: found 0"),
        (["service", "--clients", 0], "clients: found 0"),
        (["service", "--rows-per-request", "4,0"], "rows per request: found 0"),
        (["service", "--load", 1], "load: found 1"),
        (["service", "--bins", 7], "expected a multiple of the bins, 7"),
    ],
)
def test_what_cannot_be_measured(arguments, words):
    found = nescio("bench", *arguments)
    assert_one_sentence(found)
    assert words in found.stderr


@pytest.mark.parametrize(
    "arguments",
    [["lookup", "--rows", "ten"], ["lookup", "--tier", "mmx"], ["dpf", "--output", "bit,u7"], []],
)
def test_command_lines_that_make_no_sense(arguments):
    found = nescio("bench", *arguments)
    assert found.returncode == 2
    assert "Traceback" not in found.stderr


def test_the_life_of_a_table(tmp_path):
    found = nescio(
        *("bench", "table", "--rows", 3000, "--row-bytes", 20, "--output", "u8"),
        *("--json", tmp_path / "steps.json"),
    )
    assert found.returncode == 0, found.stderr
    steps = json.loads((tmp_path / "steps.json").read_text())
    assert [s["what"] for s in steps] == ["take in", "save", "map", "update", "delete", "insert"]
    assert steps[3]["changed_rows"] == 30
    assert steps[3]["ratio"] > 0
    assert steps[3]["processor_ratio"] > 0


def test_updates_of_several_tables(tmp_path):
    found = nescio(
        *("bench", "table", "--rows", 3000, "--row-bytes", "1,9", "--output", "bit,u32"),
        *("--share", 1, "--rounds", 2, "--only-updates", "--json", tmp_path / "steps.json"),
    )
    assert found.returncode == 0, found.stderr
    steps = json.loads((tmp_path / "steps.json").read_text())
    assert [s["what"] for s in steps] == ["take in", "update"] * 4
    assert [(s["row_bytes"], s["output"]) for s in steps[::2]] == [
        (1, "bit"),
        (1, "u32"),
        (9, "bit"),
        (9, "u32"),
    ]
    assert {s["rounds"] for s in steps} == {2}


def test_lookups_with_and_without_a_check(tmp_path):
    found = nescio(
        *("bench", "lookup", "--rows", 9000, "--row-bytes", 24, "--record-rows", "0", "--batch", 3),
        *("--generator", "aes128", "--seconds", 0.01, "--verify", "--json", tmp_path / "c.json"),
    )
    assert found.returncode == 0, found.stderr
    plain, checked = json.loads((tmp_path / "c.json").read_text())
    assert (plain["verified"], checked["verified"]) == (False, True)
    assert plain["record_rows"] == checked["record_rows"] == 8
    assert checked["key_bytes"] >= plain["key_bytes"]
    assert plain["times_unverified"] == 1
    assert checked["check_microseconds"] != 0
