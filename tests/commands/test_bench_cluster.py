"""`python -m benchmarks.cluster`: the events against queueing theory, and the commands."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cluster import check, constants
from benchmarks.cluster.__main__ import main
from benchmarks.cluster.constants import Constants
from benchmarks.cluster.costs import NODES, Node, Work, table_params
from benchmarks.cluster.events import _Run, closed_loop, open_loop
from benchmarks.cluster.machines import Link, gather, scatter, served
from benchmarks.cluster.model import Cluster, Stragglers
from benchmarks.cluster.plan import advise
from benchmarks.cluster.sizing import MAX_LOAD, size
from nescio.errors import ArgumentError, FileError

# A call takes a millisecond, whatever it has, and nothing else takes time.
ONLY_A_CALL = Constants(
    batch_seconds=1e-3,
    expansion=1e-30,
    product=1e-30,
    http_seconds=0.0,
    call_seconds=0.0,
    call_cpu_seconds=0.0,
    call_byte_seconds=0.0,
    shard_cpu_seconds=0.0,
    shard_byte_seconds=0.0,
    client_seconds=0.0,
    add_seconds=0.0,
    core_bytes_per_second=1e29,
    link_bytes_per_second=1e29,
    link_seconds=0.0,
)
FAST = Node("fast", 1, 1e29, 1e18)
SMALL = table_params(1000, 64)
QUEUE = Cluster(
    Work(SMALL), FAST, ONLY_A_CALL, window=0.0, batch_keys=1, in_flight=1_000_000, replicas=1
)
REAL = Cluster(Work(table_params(10**8, 128), 16), NODES["cpu16"], fronts=2, in_flight=2)


# ---- Queueing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_one_shard_without_batches_waits_as_m_d_1(load):
    outcome = open_loop(QUEUE, load * 1000, 60_000)
    expected = 1e-3 * (1 + load / (2 * (1 - load)))
    assert outcome.latencies.mean() == pytest.approx(expected, rel=0.05)
    assert outcome.busy == pytest.approx(load, rel=0.02)


def test_batches_answer_more_than_single_keys_could():
    batched = replace(QUEUE, batch_keys=128, in_flight=1, window=0.002)
    outcome = open_loop(batched, 20_000, 50_000)
    assert outcome.lookups_per_second == pytest.approx(20_000, rel=0.05)
    assert outcome.keys_per_batch == pytest.approx(1 + 20_000 * 0.002, rel=0.1)


@pytest.mark.parametrize("cluster", [QUEUE, REAL, replace(REAL, replicas=2, tree=4)])
def test_every_arrival_is_answered_after_it_was_sent(cluster):
    outcome = open_loop(cluster, 900, 4000)
    assert len(outcome.sent) == 4000
    assert (outcome.answered >= outcome.sent + cluster.seconds(1)).all()


def test_a_further_batch_begins_only_if_it_is_full():
    """A call takes a second: 9 requests that arrive within it wait for its end, 10 do not."""
    slow = replace(QUEUE, constants=replace(ONLY_A_CALL, batch_seconds=1.0), batch_keys=10)
    for count, seconds in ((9, 2.0), (10, 1.5)):
        run = _Run(replace(slow, replicas=2), np.random.default_rng(1), 0)
        run.fronts[0].arrive(np.array([0.0, *np.full(count, 0.5)]), 0.0)
        outcome = run.run(closed=False)
        assert outcome.answered[1:] == pytest.approx(seconds)


def test_shards_that_share_cores_take_turns():
    alone = replace(REAL, constants=replace(Constants(), shard_byte_seconds=1e-6))
    assert replace(alone, turns=4.0).seconds(64) == pytest.approx(4 * alone.seconds(64))
    more = alone.seconds(64) - replace(alone, constants=Constants()).seconds(64)
    size = 64 * (alone.work.key_bytes + alone.work.answer_bytes)
    assert more == pytest.approx(size * (1e-6 - Constants().shard_byte_seconds))


def test_littles_law_holds():
    outcome = open_loop(REAL, 3000, 30_000)
    times = np.random.default_rng(5).uniform(1.0, 8.0, 4000)
    inside = np.searchsorted(np.sort(outcome.sent), times)
    inside -= np.searchsorted(np.sort(outcome.answered), times)
    rate = 3000 * outcome.latencies.mean()
    assert inside.mean() == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("base", [REAL, replace(REAL, stragglers=Stragglers(0.01))])
def test_more_replicas_never_raise_the_utilization(base):
    runs = [open_loop(replace(base, replicas=n), 2000, 10_000) for n in (1, 2, 4)]
    assert runs[0].busy > runs[1].busy > runs[2].busy
    loads = [replace(base, replicas=n).loads(2000).shards for n in (1, 2, 4)]
    assert loads == pytest.approx([loads[0], loads[0] / 2, loads[0] / 4])


def test_stragglers_raise_the_tail():
    tails = [
        open_loop(replace(REAL, stragglers=Stragglers(p)), 1000, 10_000).quantile(0.99)
        for p in (0.0, 0.002, 0.05)
    ]
    assert tails[0] * 1.5 < tails[1] < tails[2]


def test_slow_machines_and_noise_raise_the_median():
    quick, slow, noisy = (
        open_loop(replace(REAL, stragglers=s), 1000, 10_000).quantile(0.5)
        for s in (Stragglers(), Stragglers(slow_nodes=0.5), Stragglers(sigma=0.5))
    )
    assert quick * 1.3 < slow
    assert quick * 1.2 < noisy


@pytest.mark.parametrize(("clients", "rows"), [(1, 1), (7, 4), (40, 16)])
def test_a_closed_loop_never_has_more_requests_under_way_than_clients(clients, rows):
    outcome = closed_loop(replace(REAL, rows_per_request=rows), clients, 2000)
    assert len(outcome.sent) == 2000
    changes = [(t, 1) for t in outcome.sent] + [(t, -1) for t in outcome.answered]
    under_way = np.cumsum([change for _, change in sorted(changes)])
    assert under_way.max() == clients


def test_a_seed_determines_a_run():
    slow = replace(REAL, replicas=2, stragglers=Stragglers(0.01, sigma=0.2))
    first, again, other = (open_loop(slow, 2000, 5000, seed=n) for n in (1, 1, 2))
    assert (first.answered == again.answered).all()
    assert not (first.answered == other.answered).all()


# ---- Links and trees -----------------------------------------------------------------------------


def test_a_server_serves_in_order():
    times = served(np.array([0.0, 1.0, 1.0, 9.0]), np.array([2.0, 2.0, 1.0, 1.0]), 0.5)
    assert times.tolist() == [2.5, 4.5, 5.5, 10.0]


def test_a_straggler_does_not_block_the_answers_of_other_batches():
    link = Link()
    link.expect(np.array([1.0, 50.0]), 0.5)
    link.expect(np.array([2.0, 2.1]), 0.5)
    assert link.receive(2.1) == pytest.approx(3.0)
    assert link.receive(50.0) == pytest.approx(50.5)


def test_a_tree_adds_what_its_children_have():
    cluster = replace(REAL, work=Work(SMALL, 10), tree=3)
    assert cluster.levels == (10, 4, 2)
    arrivals, _ = scatter(cluster, 0.0, 1)
    assert len(arrivals) == 10
    assert len(gather(cluster, arrivals, 1)) == 2
    late = arrivals.copy()
    late[9] += 1.0
    assert gather(cluster, late, 1).max() > gather(cluster, arrivals, 1).max() + 0.9


def test_bytes_are_those_of_the_messages():
    params = table_params(10**9, 128)
    cluster = replace(REAL, work=Work(params, 100))
    keys, answers = params.verified_key_bytes, params.verified_answer_bytes
    assert cluster.front_bytes() == (100 * keys, 100 * answers)
    assert replace(cluster, tree=10).front_bytes() == (10 * keys, 10 * answers)
    outcome = open_loop(REAL, 1000, 2000)
    rate = outcome.lookups_per_second
    params = REAL.work.params
    assert outcome.front_bytes_per_second[1] == 16 * params.verified_answer_bytes * rate / 2
    assert Work(params, 16, verify=False).key_bytes == params.key_bytes


def test_a_shard_gets_the_keys_of_its_own_bins():
    params = table_params(10**6, 128, 64, "partial")
    assert Work(params, 16).key_bytes == params.verified_key_bytes / 16
    assert Work(params, 100).answer_bytes == params.verified_answer_bytes / 64
    with pytest.raises(ArgumentError, match="bins"):
        replace(REAL, work=Work(params, 16), tree=4)


def test_costs_are_those_that_were_measured():
    """docs/performance.md and docs/gpu-figures.md: 2^20 rows of 256 bytes, not checked."""
    work = Work(table_params(2**20, 256), verify=False)
    core = Node("core", 1, 38e9, 24e9)
    for keys, milliseconds in ((1, 7.1), (8, 7.3), (64, 9.65), (256, 30.0)):
        assert work.seconds(Constants(), core, keys) * 1e3 == pytest.approx(milliseconds, rel=0.1)
    for keys, milliseconds in ((1, 0.152), (512, 0.559), (4096, 4.167)):
        assert work.seconds(Constants(), NODES["h200"], keys) * 1e3 == pytest.approx(
            milliseconds, rel=0.2
        )


# ---- Sizes and commands --------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1e3, 1e5, 1e6])
def test_a_size_keeps_every_load_below_the_limit(rate):
    found = size(REAL, rate)
    assert found.cluster.loads(found.group_rate).highest <= MAX_LOAD
    assert found.machines >= found.replicas * 16
    assert found.groups * found.group_rate == pytest.approx(rate)


def test_advice():
    machines = {"cpu": 40, "gpu": 10, "gpu_shards": 8, "sets": 40, "bins": 5}
    assert advise(machines, gpu_price=3) == ("GPUs", "bins")
    assert advise(machines | {"bins": None}, gpu_price=6) == ("more machines", "whole lookups")
    assert advise(dict.fromkeys(machines), gpu_price=1) == ("neither", "neither")


def test_constants_of_a_file(tmp_path):
    path = tmp_path / "constants.json"
    path.write_text('{"call_seconds": 0.002}')
    assert constants.load(str(path)).call_seconds == 0.002
    sources = {fact.name: fact.source for fact in constants.load(str(path)).facts()}
    assert sources["call_seconds"] == "file"
    assert sources["link_seconds"].startswith("assumed")
    for text in ('{"unknown": 1}', '{"call_seconds": "1"}', '{"product": 0}', "[1]", "{"):
        path.write_text(text)
        with pytest.raises(FileError):
            constants.load(str(path))


SMALL_GRID = ("--rows", "1000000", "--lookups-per-second", "2000")


def test_simulate_prints_constants_and_cases(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path, plot = tmp_path / "cases.json", tmp_path / "plot.svg"
    options = ("--shards", "4,40", "--json", str(path), "--plot", str(plot))
    assert main(["simulate", *SMALL_GRID, *options]) == 0
    assert "assumed 25 Gb" in capsys.readouterr().out
    cases = json.loads(path.read_text())
    assert [(case["shards"], case["tree"]) for case in cases[::2]] == [(4, 0), (40, 0), (40, 32)]
    assert all(0 < case["p50_ms"] <= case["p99_ms"] for case in cases)
    assert "<svg" in plot.read_text()


def test_plan_prints_decisions(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path, plot = tmp_path / "cases.json", tmp_path / "plot.svg"
    options = ("--nodes", "cpu64,h200", "--json", str(path), "--plot", str(plot))
    assert main(["plan", *SMALL_GRID, *options]) == 0
    assert "one machine" in capsys.readouterr().out.splitlines()[-1]
    cases = json.loads(path.read_text())
    assert [case["design"] for case in cases] == ["single"] * 2 + ["sets"] * 2 + ["bins"] * 2
    assert "<svg" in plot.read_text()


CASE = {
    "shards": 2,
    "threads": 1,
    "clients": 8,
    "rows": 100_000,
    "row_bytes": 256,
    "rows_per_request": 4,
    "queries_per_second": 5000.0,
    "p50_ms": 6.0,
    "p99_ms": 9.0,
}


def test_check_compares_predictions_and_measurements(tmp_path, capsys):
    path, out = tmp_path / "measured.json", tmp_path / "out.json"
    path.write_text(json.dumps([CASE, CASE | {"shards": 8}]))
    assert main(["check", "--measured", str(path), "--json", str(out)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    for line in json.loads(out.read_text()):
        assert line["p50_ms_x"] == line["p50_ms_predicted"] / 6.0


@pytest.mark.parametrize("wrong", [{"shards": 0}, {"p50_ms": None}, {"rows": 1.5}])
def test_check_refuses_other_files(tmp_path, wrong):
    path = tmp_path / "measured.json"
    path.write_text(json.dumps([CASE | wrong]))
    with pytest.raises(FileError, match=next(iter(wrong))):
        check.read(str(path))
