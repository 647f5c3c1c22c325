"""Scores and costs of the search: those of the layout that is made, of clients and of servers."""

import numpy as np
import pytest

from nescio import _core
from nescio.errors import ArgumentError
from nescio.pir import Client
from nescio.pir.batch import AccessLog, build
from nescio.pir.batch._plan import Planner
from nescio.pir.batch._tune import cost
from nescio.pir.batch._tune.cost import Cost, Machine, Setup, bin_table
from nescio.pir.batch._tune.design import Design, Needs, exact, first_designs, similar
from nescio.pir.batch._tune.result import Budgets, Trial, Tuning
from nescio.pir.batch._tune.score import Logs, Score, Scorer
from pir.batch.logs import ROWS, sessions

NOTHING = Machine(1e-6, 1e-9, 1e-12, 1e-12)
DESIGNS = [
    Design(1, 5),
    Design(8),
    Design(4, 2),
    Design(4, 1, 2),
    exact(12, 4),
    Design(4, 1, 1, 40, 8, 1),
    Design(4, 1, 2, 30, 3, 2),
    Design(8, 1, 1, together=1),
    Design(4, 1, 1, 40, 8, 1, together=3),
    Design(4, 2, 2, 40, 8, 1, together=5),
]


def scorer_of(log, quality=None, min_count=2):
    train, held = log.split()
    whole = Logs(train, held, held, np.ones(len(held.rows), bool))
    return Scorer(whole, ROWS, min_count, 2, quality), train, held


def layout_of(design, train, row_bytes=16, min_count=2):
    trial = Trial(design, Score(1, 1, 1), Cost(1, 1, 1, 0.001), 0.001)
    return Tuning([trial], Budgets(), Setup(ROWS, row_bytes), train, min_count).layout()


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.describe())
def test_a_score_is_that_of_the_layout_that_is_made(rng, design):
    scorer, train, held = scorer_of(sessions(rng))
    layout = layout_of(design, train)
    planner = Planner(layout, _core.ThreadPool(1))
    expected = planner.assign(held.offsets, held.rows.astype(np.uint64)) != -1
    if layout.full.seed == 0:  # exact mode may have chosen another one
        assert (scorer.retrieved(design) == expected).all()
    score = scorer.score(design)
    assert score.retrieved == pytest.approx(expected.mean(), abs=0.02)
    whole = np.array([own.all() for own in np.split(expected, held.offsets[1:-1])])
    assert score.complete == pytest.approx(whole.mean(), abs=0.05)
    assert score.quality == score.retrieved


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.describe())
@pytest.mark.parametrize("verify", [False, True])
def test_bytes_are_those_of_a_client_and_memory_that_of_a_table(rng, design, verify):
    _, train, _ = scorer_of(sessions(rng))
    table = build(rng.integers(0, 256, (ROWS, 16), np.uint8), layout_of(design, train)).table
    cost = Cost.of(design, Setup(ROWS, 16, verify=verify), NOTHING)
    client = Client(table.params, table.tops, verify=verify)
    assert (cost.key_bytes, cost.answer_bytes) == (client.query_bytes, client.answer_bytes)
    assert cost.bytes == 2 * (client.query_bytes + client.answer_bytes)
    assert cost.table_bytes == table.bytes


def test_the_time_is_that_of_all_keys():
    setup = Setup(1 << 16, 256, verify=False, clients=3)
    one, many = (Cost.of(d, setup, NOTHING).seconds for d in (Design(1, 1), Design(1, 4)))
    assert one == pytest.approx(3e-6 + 3 * 65536e-9 + 4 * 65536 * 256e-12)
    assert many == pytest.approx(12e-6 + 12 * 65536e-9 + 13 * 65536 * 256e-12)
    checked = Cost.of(Design(1), Setup(1 << 16, 256, clients=3), NOTHING)
    assert checked.seconds > one
    assert checked.bytes > Cost.of(Design(1), setup, NOTHING).bytes


def test_a_measurement_has_all_bins_or_a_share_of_them(monkeypatch):
    setup = Setup(4096, 16)
    params = setup.params(Design(32).groups(4096))
    table, factor = bin_table(setup, params)
    assert (table.params.bins, factor) == (params.bins, 1)
    monkeypatch.setattr("nescio.pir.batch._tune.cost.MAX_MEASURED_BYTES", 16384)
    table, factor = bin_table(setup, params)
    assert (table.params.bins[0].bins, factor) == (8, 4)
    monkeypatch.setattr("nescio.pir.batch._tune.cost.MAX_MEASURED_BYTES", 100)
    with pytest.raises(ArgumentError, match="too large to measure"):
        bin_table(setup, params)


def test_the_model_is_measured():
    machine = Machine.measured(Setup(1000, 16, threads=1), 0.01)
    assert min(machine) >= 0
    assert machine.per_key + machine.per_record + machine.per_byte > 0


@pytest.mark.parametrize("row_bytes", [4096, 40_000])
def test_long_rows_are_measured_in_smaller_tables(monkeypatch, row_bytes):
    monkeypatch.setattr(cost, "MAX_MEASURED_BYTES", 1 << 20)
    machine = Machine.measured(Setup(1 << 20, row_bytes, threads=1), 0.001)
    assert min(machine) >= 0  # a busy machine's times can belong to any of the four
    assert sum(machine) > 0


def test_no_measurement_of_the_model_has_more_rows_than_the_table(monkeypatch):
    seen = []
    monkeypatch.setattr(cost, "measure", lambda setup, params, *_: seen.append(params) or 1.0)
    Machine.measured(Setup(9, 3000), 0.001)
    assert seen
    assert all(group.rows <= 9 for params in seen for group in params.bins)


def test_a_large_table_counts_each_group_by_its_own_bins(monkeypatch):
    """Of a server whose time is the rows that keys walk over, a share of the bins tells all."""

    def walk(params):
        return float(sum(group.slots * group.rows for group in params.bins))

    def answering(setup, params):
        table, factor = cost.bin_table(setup, params)
        return lambda: walk(table.params), factor

    monkeypatch.setattr(cost, "MAX_MEASURED_BYTES", 16384)
    monkeypatch.setattr(cost, "answering", answering)
    monkeypatch.setattr(cost, "_times", lambda work, seconds: [work()])
    setup = Setup(4096, 16)
    for design in (Design(32), Design(32, 1, 1, 512, 1, 8), Design(30, 1, 2, 40, 8, 1)):
        params = setup.params(design.groups(4096))
        assert cost.measure(setup, params, 0.001) == pytest.approx(walk(params))


# ---- Quality -------------------------------------------------------------------------------------


def test_a_quality_function_gets_rows_and_what_was_retrieved(rng):
    seen = []

    def quality(sets, retrieved):
        seen.append((sets, retrieved))
        return -1.5

    scorer, _, held = scorer_of(sessions(rng), quality)
    assert scorer.score(Design(4)).quality == -1.5
    ((sets, retrieved),) = seen
    assert [rows.tolist() for rows in sets] == [rows.tolist() for rows in held]
    assert [found.dtype for found in retrieved] == [bool] * len(held)
    assert np.concatenate(retrieved).tolist() == scorer.retrieved(Design(4)).tolist()


@pytest.mark.parametrize(("value", "words"), [(float("nan"), "found nan"), ("good", "found str")])
def test_a_quality_that_is_not_a_number_names_the_layout(rng, value, words):
    scorer, _, _ = scorer_of(sessions(rng), lambda sets, retrieved: value)
    with pytest.raises(ArgumentError, match=f"quality: {words} for the layout 4 bins x 2 keys"):
        scorer.score(Design(4, 2))


def test_cached_rows_count_as_retrieved(rng):
    log = sessions(rng)
    cached = np.arange(len(log.rows)) % 2 == 0
    logs = Logs(log, log.kept(~cached), log, ~cached)
    found = Scorer(logs, ROWS, 2, 1).retrieved(Design(1))
    assert found[cached].all()
    assert found.mean() < 0.75


# ---- Designs -------------------------------------------------------------------------------------


def test_rows_and_pairs_of_few_users_shape_nothing():
    log = AccessLog([[1, 2]] * 9 + [[3, 4]], users=[0] * 9 + [1])
    logs = Logs(log, log, log, np.ones(len(log.rows), bool))
    assert Scorer(logs, 10, 1, 1).needs == Needs(10, (2,) * 6, 4, pairs=True)
    assert Scorer(logs, 10, 2, 1).needs == Needs(10, (2,) * 6, 0, pairs=False)


@pytest.mark.parametrize("rows", [1, 3, 50, 10**6])
@pytest.mark.parametrize("longest", [1, 4, 30, 3000])
def test_every_design_of_a_search_can_be_made(rows, longest):
    needs = Needs(rows, (1, longest), min(rows, 1000), pairs=rows > 1)
    designs = first_designs(needs)
    assert designs
    near = [one for design in designs[:40] for one in similar(design, needs)]
    for design in {*designs, *near}:
        assert sum(g.total_rows for g in design.groups(rows)) >= rows
        assert Cost.of(design, Setup(rows, 16), NOTHING).bytes > 0


def test_the_first_designs_are_of_all_kinds():
    designs = first_designs(Needs(10_000, (5, 20, 40), 5000, pairs=True))
    kinds = [design.kind for design in designs[:12]]
    assert set(kinds) == {"plain", "bins", "hot", "choices", "together", "exact"}
