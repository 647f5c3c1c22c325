"""A trained recommender: exported, served by two services over HTTP, loaded, and the same bits."""

import contextlib
import threading

import numpy as np
import pytest

import nescio
import nescio.pir.batch
from pytorch.movielens import Model, histories, share_above_others, torch, trained
from service.conftest import QUOTAS, running

nt = pytest.importorskip("nescio.torch")
batch = nescio.pir.batch
service = pytest.importorskip("nescio.service")


@pytest.fixture(scope="module")
def data():
    torch.set_num_threads(1)
    films, history, film = histories()
    return films, history, film, trained(films, history, film)


@contextlib.contextmanager
def services(folder):
    """Serves all tables of a folder of servers; gives the addresses of both parties."""
    apps = []
    for party in (0, 1):
        tables = {path.stem: table_of(path) for path in folder.glob("*.npy")}
        servers = {
            name: nescio.Server(table, party=party, threads=1) for name, table in tables.items()
        }
        apps.append(service.create_app(servers, party=party, quotas=QUOTAS))
    with running(apps[0]) as first, running(apps[1]) as second:
        yield first, second


def table_of(path):
    """Returns the table of an array, with its layout if it has one."""
    layout = path.with_suffix(".layout")
    if not layout.exists():
        return nescio.Table(np.load(path))
    return batch.build(np.load(path), batch.Layout.load(layout)).table


def test_the_model_learns_from_the_data(data):
    films, history, film, model = data
    assert share_above_others(model, films, history, film) > 0.7
    assert share_above_others(Model(films), films, history, film) < 0.6


def test_scores_over_http_are_those_of_the_plain_model(data, tmp_path):
    films, history, film, model = data
    nt.export(model, tmp_path)
    with services(tmp_path / "servers") as urls:
        private = nt.load(lambda: Model(films), tmp_path / "device", urls)
        with torch.no_grad():
            for own in torch.arange(24).split(8):
                expected = model(history[own], film[own])
                assert torch.equal(private(history[own], film[own]), expected)
        for module in (private.history, private.film):
            module.lookups.close()


@pytest.mark.parametrize("mode", ["exact", "partial"])
def test_scores_with_a_layout_made_from_the_histories(data, tmp_path, mode):
    """A history is one inference: in exact mode the scores are those of the plain model."""
    films, history, film, model = data
    log = batch.AccessLog([row[row > 0] for row in history.numpy()])
    options = {} if mode == "exact" else {"bins": 16, "hot": 200, "hot_bins": 8, "together": 1}
    layout = batch.make_layout(films, log, **options)
    assert layout.mode == mode
    nt.export(model, tmp_path, layouts={"history": layout})
    own = slice(0, 16)
    with services(tmp_path / "servers") as urls, torch.no_grad():
        private = nt.load(lambda: Model(films), tmp_path / "device", urls, missing="zeros")
        found, expected = private(history[own], film[own]), model(history[own], film[own])
        gone = private.history.last_missing
        assert bool(gone.any()) == (mode == "partial")
        whole = ~gone.any(1)
        assert torch.equal(found[whole], expected[whole])
        for module in (private.history, private.film):
            module.lookups.close()


def test_the_digest_stays_pinned(data, tmp_path):
    """A table that both operators replace later is refused by a model that was loaded before."""
    films, history, film, model = data
    nt.export(model, tmp_path / "one")
    with torch.no_grad():
        model.film.weight[film[0]] += 1
    nt.export(model, tmp_path / "two")
    with services(tmp_path / "two" / "servers") as urls:
        with pytest.raises(nescio.errors.MismatchError, match="digest"):
            nt.load(lambda: Model(films), tmp_path / "one", urls)
        private = nt.load(lambda: Model(films), tmp_path / "one", urls, check_digest=False)
        assert torch.equal(private(history[:2], film[:2]), model(history[:2], film[:2]))
        for module in (private.history, private.film):
            module.lookups.close()


def test_nothing_stays_open_after_an_error(data, tmp_path):
    films, _, _, model = data
    nt.export(model, tmp_path)
    (tmp_path / "servers" / "history.npy").unlink()
    with services(tmp_path / "servers") as urls:
        with pytest.raises(nescio.errors.ServerRefusedError, match="there is no table 'history'"):
            nt.load(lambda: Model(films), tmp_path, urls)
        assert [t for t in threading.enumerate() if t.name == "nescio-lookup"] == []
    with pytest.raises(nescio.errors.ServerUnreachableError):
        nt.load(lambda: Model(films), tmp_path, urls)
