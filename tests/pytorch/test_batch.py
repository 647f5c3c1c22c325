"""Private modules over tables with a batch layout: each sample or bag is one inference."""

import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, IndexRangeError, MismatchError
from nescio.pir.batch import BatchClient, FullPart, HotPart, Layout, Together, build
from pytorch.lookups import Recorded, stored
from pytorch.models import Recommender, nn, recommender, torch

nt = pytest.importorskip("nescio.torch")

ROWS = 300
NEAR = Together(np.arange(100), np.arange(100)[:, None] + [1, 2])
EXACT = Layout(ROWS, FullPart(6, hashes=4, seed=3), lookups=8)
PARTIAL = Layout(ROWS, FullPart(4), HotPart(np.arange(40), 3), NEAR)
TIGHT = Layout(ROWS, FullPart(2))  # two rows an inference, from different halves
LAYOUTS = {"exact": EXACT, "partial": PARTIAL, "tight": TIGHT}
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def rows_of(module):
    return stored(module.weight)


def pair(kind, layout, dtype=torch.float32, missing="zeros", **options):
    """Returns a plain module and the private one with its rows."""
    torch.manual_seed(3)
    plain = getattr(nn, kind)(ROWS, 5, **options).to(dtype).eval()
    options.pop("_weight", None)
    lookups = Recorded(build(rows_of(plain), layout).table)
    private = getattr(nt, f"Private{kind}")
    return plain, private(lookups, dtype=dtype, missing=missing, **options)


def samples(count, length, below=ROWS, seed=1):
    return torch.randint(below, (count, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_exact_mode_is_the_plain_embedding(dtype):
    plain, private = pair("Embedding", EXACT, dtype, padding_idx=0)
    for x in (
        samples(5, 8),
        samples(5, 30, below=8),
        samples(4, 6).reshape(4, 3, 2),
        samples(0, 3),
    ):
        assert torch.equal(private(x), plain(x))
        assert private.last_missing.shape == x.shape
        assert not private.last_missing.any()
    assert (private.num_embeddings, private.embedding_dim) == (ROWS, 5)


def test_vectors_and_numbers_are_samples_of_one_index():
    plain, private = pair("Embedding", EXACT)
    for x in (samples(1, 9)[0], torch.tensor(17)):
        assert torch.equal(private(x), plain(x))
    nine, one = private.lookups.sizes()
    assert 8 * one[0] < nine[0] <= 9 * one[0]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_exact_mode_is_the_plain_bag(mode, padding):
    plain, private = pair("EmbeddingBag", EXACT, mode=mode, padding_idx=padding)
    x = samples(5, 8, below=9)
    assert torch.equal(private(x), plain(x))
    flat, offsets = samples(1, 20)[0], torch.tensor([0, 0, 5, 12, 12, 13])
    assert torch.equal(private(flat, offsets), plain(flat, offsets))
    assert torch.equal(private(flat[:0], offsets[:1]), plain(flat[:0], offsets[:1]))


def test_padding_takes_no_place_of_a_bag():
    """Eight other rows are looked up: the most that the layout has places for."""
    plain, private = pair("EmbeddingBag", EXACT, missing="error", padding_idx=299)
    x = torch.cat([samples(6, 8, below=290), torch.full((6, 40), 299)], dim=1)
    assert torch.equal(private(x), plain(x))
    assert not private.last_missing.any()


# ---- what leaves ---------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_only_the_number_of_samples_leaves(layout, kind):
    """The bytes do not depend on the indices, on how many there are, or on repeats."""
    _, private = pair(kind, LAYOUTS[layout], padding_idx=0)
    inputs = [samples(3, length, below) for length in (1, 2, 9, 70) for below in (1, 2, ROWS)]
    for x in inputs:
        private(x)
    sizes = private.lookups.sizes()
    assert len(sizes) == len(inputs)
    assert len(set(sizes)) == 1


def test_bags_hide_their_lengths():
    _, private = pair("EmbeddingBag", PARTIAL)
    for lengths in ([0, 0, 0], [1, 5, 2], [50, 0, 0]):
        offsets = torch.tensor(np.cumsum([0, *lengths[:-1]]))
        private(samples(1, sum(lengths))[0], offsets)
    assert len(set(private.lookups.sizes())) == 1


def test_no_samples_send_nothing():
    _, private = pair("Embedding", EXACT)
    assert private(samples(0, 4)).shape == (0, 4, 5)
    assert private.lookups.sent == []


# ---- rows that do not fit ------------------------------------------------------------------------

MANY = samples(4, 12)


def test_missing_rows_are_zeros_and_named():
    plain, private = pair("Embedding", TIGHT)
    found, expected = private(MANY), plain(MANY)
    gone = private.last_missing
    assert 0 < gone.sum() < gone.numel()
    assert torch.equal(found[~gone], expected[~gone])
    assert not found[gone].any()
    for own, missing in zip(MANY, gone, strict=True):
        assert len(set(own[~missing].tolist())) <= 2  # one row from each bin
        assert not set(own[~missing].tolist()) & set(own[missing].tolist())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_missing_rows_have_a_row_of_their_own(dtype):
    row = torch.arange(5.0, requires_grad=True)
    plain, private = pair("Embedding", TIGHT, dtype, missing=row)
    found = private(MANY)
    gone = private.last_missing
    assert torch.equal(found[gone], row.to(dtype).expand(int(gone.sum()), 5))
    assert torch.equal(found[~gone], plain(MANY)[~gone])
    assert private.state_dict() == {}
    assert not found.requires_grad
    assert private.half()(MANY).dtype == torch.float16


def test_missing_rows_can_be_an_error_that_does_not_name_them():
    _, private = pair("Embedding", TIGHT, missing="error")
    with pytest.raises(ArgumentError, match="of 48 rows are missing: .*`last_missing` says") as e:
        private(MANY)
    numbers = {word for word in str(e.value).split() if word.isdigit()}
    assert numbers == {str(int(private.last_missing.sum())), "48"}
    assert len(private.lookups.sent) == 1  # nothing is sent because of it


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_without_missing_rows(mode):
    plain, private = pair("EmbeddingBag", TIGHT, mode=mode, missing="skip", padding_idx=5)
    found = private(MANY)
    for own, missing, bag in zip(MANY, private.last_missing, found, strict=True):
        there = own[~missing]
        torch.testing.assert_close(bag, plain(there[None])[0])
    if mode != "sum":
        zeros = pair("EmbeddingBag", TIGHT, mode=mode)[1]
        assert not torch.equal(zeros(MANY), found)


def test_rows_that_fit_have_the_bits_of_the_plain_bag():
    plain, private = pair("EmbeddingBag", EXACT, missing="skip")
    assert torch.equal(private(MANY[:, :8]), plain(MANY[:, :8]))


# ---- clients -------------------------------------------------------------------------------------


def test_a_client_with_a_cache_sends_the_same():
    plain, _ = pair("Embedding", TIGHT)
    lookups = Recorded(build(rows_of(plain), TIGHT).table)
    private = nt.PrivateEmbedding(BatchClient(lookups, cache_rows=100, carry=True))
    for _ in range(20):
        found = private(MANY)
    assert torch.equal(found, plain(MANY))
    assert len(set(lookups.sizes())) == 1


def test_two_modules_share_a_client():
    plain, _ = pair("Embedding", EXACT)
    client = BatchClient(Recorded(build(rows_of(plain), EXACT).table))
    one, bag = nt.PrivateEmbedding(client), nt.PrivateEmbeddingBag(client, mode="sum")
    x = samples(3, 4)
    assert torch.equal(one(x), plain(x))
    torch.testing.assert_close(bag(x), plain(x).sum(1))
    assert one.lookups is bag.lookups is client


def test_indices_outside_the_table():
    _, private = pair("Embedding", EXACT)
    for index in (-1, ROWS):
        with pytest.raises(IndexRangeError, match=f"found {index}, expected 0 to 299"):
            private(torch.tensor([[1, index]]))
    assert private.lookups.sent == []


def test_a_table_whose_rows_have_keys_instead_of_numbers():
    table = nescio.pir.KeyedTable(["a", "b"], np.zeros((2, 3), "f4")).table
    with pytest.raises(ArgumentError, match="look up keys with nescio.pir.KeyedClient"):
        nt.PrivateEmbedding(Recorded(table))


def test_rows_with_more_axes():
    table = build(np.zeros((ROWS, 2, 3), "f4"), EXACT).table
    with pytest.raises(ArgumentError, match=r"found rows of shape \(2, 3\), expected vectors"):
        nt.PrivateEmbedding(Recorded(table))


# ---- export and load -----------------------------------------------------------------------------

ITEMS = Layout(200, FullPart(10, hashes=4, seed=1), lookups=10)


def served(folder, layouts):
    found = {}
    for path in sorted((folder / "servers").glob("*.npy")):
        rows, layout = np.load(path), layouts.get(path.stem)
        table = nescio.Table(rows) if layout is None else build(rows, layout).table
        found[path.stem] = Recorded(table)
    return found


def test_a_model_with_layouts_goes_round(tmp_path):
    model, x = recommender()
    params = nt.export(model, tmp_path, layouts={"items": ITEMS})
    assert params["items"].layout == ITEMS.digest
    assert params["users"].layout == ""
    layout = Layout.load(tmp_path / "servers" / "items.layout")
    assert layout == ITEMS
    lookups = served(tmp_path, {"items": layout})
    private = nt.load(Recommender, tmp_path, lookups)
    assert torch.equal(private(*x), model(*x))
    sizes = lookups["items"].sizes()
    private(x[0][:, :2], *x[1:])
    assert lookups["items"].sizes() == sizes
    lookups["items"] = BatchClient(lookups["items"], cache_rows=20)
    missing = {"items": "skip", "users": "zeros", "targets": "error"}
    private = nt.load(Recommender, tmp_path, lookups, missing=missing)
    assert torch.equal(private(*x), model(*x))
    assert private.items.lookups is lookups["items"]
    result = private.load_state_dict(model.state_dict())
    assert not result.unexpected_keys


def test_tables_without_the_layout_of_the_export(tmp_path):
    model, _ = recommender()
    nt.export(model, tmp_path / "with", layouts={"items": ITEMS})
    nt.export(model, tmp_path / "without")
    other = Layout(200, FullPart(10, hashes=4, seed=2), lookups=10)
    for folder, layouts, said in [
        ("with", {}, f"found no layout, expected the layout {ITEMS.digest}"),
        ("with", {"items": other}, f"found the layout {other.digest}, expected the layout"),
        ("without", {"items": ITEMS}, f"found the layout {ITEMS.digest}, expected no layout"),
    ]:
        lookups = served(tmp_path / folder, layouts)
        for check in (True, False):
            with pytest.raises(MismatchError, match=said):
                nt.load(Recommender, tmp_path / folder, lookups, check_digest=check)


@pytest.mark.parametrize(
    ("layouts", "said"),
    [
        ({"films": ITEMS}, "layouts: found 'films', expected names of tables such as 'items'"),
        ({"users": ITEMS}, "layouts, 'users': found 200 rows, exact .*expected a Layout of 30"),
        ({"items": b"layout"}, "layouts, 'items': found bytes, expected a Layout of 200 rows"),
    ],
    ids=str,
)
def test_layouts_of_no_table(tmp_path, layouts, said):
    with pytest.raises(ArgumentError, match=said):
        nt.export(recommender()[0], tmp_path / "out", layouts=layouts)
    assert list(tmp_path.iterdir()) == []
