"""`python -m benchmarks.ot steps` at tiny sizes: its cases, checks and errors."""

import json

import numpy as np
import pytest

from benchmarks.ot import machine as machines
from benchmarks.ot import run as ot_steps
from benchmarks.ot.__main__ import main
from benchmarks.ot.limits import HostLimits, Limit
from benchmarks.ot.work import Part, Trees, Work, steps
from commands.conftest import assert_one_sentence, benchmark
from nescio import _core
from nescio.bench.timing import WrongResultError
from nescio.ot import parameters

FIELDS = {
    *("step", "family", "parameters", "n", "device", "device_name", "threads", "way", "status"),
    *("milliseconds", "nanoseconds_per_ot", "limit_milliseconds", "limit_of", "times_limit"),
    *("aes_milliseconds", "reads_milliseconds", "memory_milliseconds", "verified"),
}
STEPS = [
    *(("sender_trees", "primal", "b10"), ("sender_trees", "dual", "ec")),
    *(("receiver_trees", "primal", "b10"), ("receiver_trees", "dual", "ec")),
    *(("code", "primal", "b10"), ("code", "dual", "ec"), ("code", "dual", "qc")),
    *(("hash", None, None), ("check", None, None), ("transpose", None, None)),
]


def key(case):
    return case["step"], case["family"], case["parameters"]


def test_every_step_in_every_tier(tmp_path):
    found = benchmark(
        *("ot", "steps", "--n", "1,1500", "--seconds", 0.001, "--threads", 2),
        *("--json", tmp_path / "cases.json", "--plot", tmp_path / "plot.png"),
    )
    assert found.returncode == 0, found.stderr
    cases = json.loads((tmp_path / "cases.json").read_text())
    tiers = _core.supported_tiers()
    expected = [
        (n, *step, tier)
        for n in (1, 1500)
        for step in STEPS
        for tier in (["only"] if step[0] == "transpose" else tiers)
    ]
    assert [(c["n"], *key(c), c["way"]) for c in cases] == expected
    for case in cases:
        assert set(case) >= FIELDS
        assert (case["device"], case["threads"], case["verified"]) == ("cpu", 2, True)
        limit = max(case[f"{part}_milliseconds"] for part in ("aes", "reads", "memory"))
        assert case["limit_milliseconds"] == limit == case[f"{case['limit_of']}_milliseconds"]
        assert case["times_limit"] == pytest.approx(case["milliseconds"] / limit)
        assert case["nanoseconds_per_ot"] == pytest.approx(case["milliseconds"] * 1e6 / case["n"])
    lines = found.stdout.splitlines()
    assert len(lines) == 1 + len(cases) + 6 + 2 + 2 * len(STEPS)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_a_device_beside_the_cpu(tmp_path, capsys, monkeypatch):
    """Without the kernel for the trees of dual LPN that is slowest on the emulated device."""
    ways_of = machines.DeviceMachine.ways

    def faster(machine, step):
        own = ways_of(machine, step)
        return [way for way in own if (step.family, way) != ("dual", "single")]

    monkeypatch.setattr(machines.DeviceMachine, "ways", faster)
    path = tmp_path / "cases.json"
    options = ["--n", "100", "--seconds", "0.001", "--device", "emulated,cpu", "--tier", "portable"]
    assert main(["steps", *options, "--json", str(path)]) == 0
    cases = json.loads(path.read_text())
    ways = {}
    for case in cases:
        ways.setdefault((case["device"], *key(case)), []).append(case["way"])
    trees = ["single", "separate", "fused"]
    assert ways["emulated", "sender_trees", "primal", "b10"] == trees
    assert ways["emulated", "sender_trees", "dual", "ec"] == trees[1:]
    assert ways["emulated", "code", "primal", "b10"] == ["separate", "words", "fused"]
    assert ways["emulated", "code", "dual", "qc"] == [None]
    assert all(ways["emulated", *step] == ["fused"] for step in STEPS[2:4])
    assert all(ways["cpu", *step] == ["portable"] for step in STEPS[:-1])
    skipped = [case for case in cases if case["status"] != "measured"]
    assert [(c["device"], c["status"]) for c in skipped] == [("emulated", "no GPU part")]
    for case in cases:
        if case["device"] == "emulated" and case["status"] == "measured":
            assert case["device_name"] == "emulated (emulated:0)"
            assert (case["reads_milliseconds"] is None) == (case["step"] == "code")
    assert "no GPU part" in capsys.readouterr().out


def case(way, milliseconds, device="cuda", step="hash"):
    measured = {"milliseconds": milliseconds, "status": "measured"}
    named = dict(zip(("step", "family", "parameters"), (step, None, None), strict=True))
    return {**named, "n": 5, "device": device, "way": way, **measured}


def test_naive_and_ours():
    skipped = {**case(None, 0.0, step="code"), "status": "no GPU part"}
    cases = [case("single", 8.0), case("words", 4.0), case("fused", 2.0), skipped]
    cases += [case("portable", 90.0, "cpu"), case("avx2", 30.0, "cpu"), case("only", 7.0, step="x")]
    card, processor, alone = ot_steps.summary(cases)
    assert (card["naive_way"], card["way"], card["speedup"]) == ("single", "fused", 4.0)
    assert card["cpu_milliseconds"] == 30.0
    assert (processor["naive_milliseconds"], processor["speedup"]) == (90.0, 3.0)
    assert "cpu_milliseconds" not in processor
    assert alone["milliseconds"] == 7.0
    assert "speedup" not in alone


def test_steps_are_cut_as_extensions_are():
    chosen = parameters.primal("b10")
    n = 2 * chosen.n + 1025
    found = {(s.name, s.family, s.parameters): s for s in steps(n, chosen)}
    assert list(found) == STEPS
    trees = found["sender_trees", "primal", "b10"]
    assert trees.parts == (Part(0, 850), Part(850, 1700), Part(1700, 1702))
    assert trees.work.calls == 1702 << 10
    code = found["code", "primal", "b10"]
    assert [part.end - part.begin for part in code.parts] == [chosen.n, chosen.n, 1025]
    assert code.work.reads == 10 * n
    assert found["code", "dual", "ec"].outputs == n


@pytest.mark.parametrize("name", ["sender_trees", "receiver_trees", "code", "hash", "transpose"])
def test_wrong_results_are_not_timed(name, monkeypatch):
    """One bit of what a step gives is another: of the first array, wherever it is made."""

    def spoilt(*arguments):
        found = prepare(*arguments)

        def run(part):
            first, *others = found(part)
            first = first.copy()
            first[-1] ^= np.uint64(1)
            return (first, *others)

        return run

    machine = machines.HostMachine(None, 1)
    prepare = machine.prepare
    own = [s for s in steps(300, parameters.primal("b10")) if s.name == name]
    assert own
    for step in own:
        way = machine.ways(step)[0]
        ot_steps._verify(step, prepare(step, way), machine.reference(step, way), name)
        with pytest.raises(WrongResultError, match=f"{name}: differs from another implementation"):
            ot_steps._verify(step, spoilt(step, way), machine.reference(step, way), name)


def test_the_sums_of_trees_are_compared_too():
    machine = machines.HostMachine(None, 1)
    step = next(s for s in steps(300, parameters.primal("b10")) if isinstance(s, Trees))
    run = machine.prepare(step, "portable")
    with pytest.raises(WrongResultError):
        ot_steps._verify(step, lambda part: (run(part)[0], run(part)[1] + 1), run, "sums")


def test_limits():
    limit = Limit(3.0, None, 4.0)
    assert (limit.longest, limit.name) == (4.0, "memory")
    assert Limit(3.0, 5.0, 4.0).name == "reads"
    one, two = HostLimits(1), HostLimits(2)
    two._rates = {("aes", "portable"): 2.0, ("reads", 9): 3.0, ("copy", 64): 1.0}
    assert two.of(Work(10, 20, 9, 64), "portable") == (5.0, 30.0, 1.0)
    large = one.of(Work(0, 0, 1, 1 << 29), "portable")
    assert large.memory == pytest.approx(4 * one.of(Work(0, 0, 1, 1 << 27), "portable").memory)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--n", 0], "n: found 0, expected 1 to 33554432"),
        (["--n", "2^26"], "n: found 67108864"),
        (["--seconds", 0], "seconds: found 0"),
        (["--threads", -1], "threads: found -1"),
        (["--set", "cuot"], "insecure_cuot"),
        (["--set", "b9"], "primal set: found 'b9'"),
        (["--device", "emulated:0+emulated:1"], "expected a single device"),
        (["--json", "/no/such/folder/x"], "/no/such/folder"),
        (["--plot", "/no/such/folder/x"], "/no/such/folder"),
    ],
)
def test_what_cannot_be_measured(arguments, words):
    found = benchmark("ot", "steps", *arguments)
    assert_one_sentence(found)
    assert words in found.stderr


@pytest.mark.parametrize("arguments", [["--tier", "mmx"], ["--device", "tpu"], ["--n", "many"]])
def test_command_lines_that_make_no_sense(arguments):
    found = benchmark("ot", "steps", *arguments)
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
