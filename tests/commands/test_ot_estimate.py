"""`nescio ot estimate`."""

import json

import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here


def test_all_sets_in_a_table():
    done = nescio("ot", "estimate")
    assert done.returncode == 0, done.stderr
    heading, *lines = done.stdout.splitlines()
    assert heading.split()[:4] == ["set", "N", "k", "t"]
    names = [line.split()[0] for line in lines]
    assert names == ["b10", "b11", "b12", "b13", "insecure_cuot", "ec", "qc", "ec", "qc"]
    assert all(len(line.split()) == len(heading.split()) for line in lines)
    assert lines[3].split()[-2:] == ["128.2", "hybrid"]


@pytest.mark.parametrize("name", ["cuot", "insecure_cuot"])
def test_one_set_by_name(name):
    [case] = json.loads(nescio_here("ot", "estimate", "--set", name, "--json").stdout)
    assert case["set"] == "insecure_cuot"
    assert (case["N"], case["k"], case["t"]) == (10_485_760, 452_000, 1280)
    assert round(case["bits"], 1) == round(case["hybrid"], 1) == 125.3
    assert case["best"] == "hybrid"


def test_any_instance():
    options = ["--n", "2^10", "--k", "652", "--t", "57", "--json"]
    [case] = json.loads(nescio_here("ot", "estimate", *options).stdout)
    assert case["N"] == 1024
    assert case["bits"] == pytest.approx(76.32, abs=0.01)
    assert "linear_test" not in case


def test_a_dual_code():
    [case] = json.loads(
        nescio_here("ot", "estimate", "--dual", "ec", "--n", "2^20", "--json").stdout
    )
    assert (case["N"], case["t"], case["bits"], case["best"]) == (1 << 21, 128, 128, "linear_test")


def test_attacks_that_do_not_apply_are_left_out():
    done = nescio_here("ot", "estimate", "--n", "1000", "--k", "2", "--t", "1", "--json")
    [case] = json.loads(done.stdout, parse_constant=pytest.fail)
    assert "isd" not in case
    table = nescio_here("ot", "estimate", "--n", "1000", "--k", "2", "--t", "1").stdout
    assert " - " in table.splitlines()[1]


@pytest.mark.parametrize(
    "options",
    [
        ["--set", "b14"],
        ["--set", "b13", "--n", "5"],
        ["--n", "1000"],
        ["--k", "10", "--t", "3"],
        ["--dual", "ec"],
        ["--dual", "ec", "--n", "0"],
        ["--dual", "ec", "--n", "2^40"],
        ["--n", "100", "--k", "100", "--t", "3"],
        ["--n", "2^99", "--k", "100", "--t", "3"],
    ],
)
def test_what_cannot_be_estimated_is_a_sentence(options):
    assert_one_sentence(nescio_here("ot", "estimate", *options))


@pytest.mark.parametrize("value", ["x", "-1", "2^", "^5", "2^999", "1.5", ""])
def test_what_is_no_number_is_refused(value):
    done = nescio_here("ot", "estimate", f"--n={value}", "--k=5", "--t=3")
    assert done.returncode == 2
    assert "expected a number such as" in done.stderr
