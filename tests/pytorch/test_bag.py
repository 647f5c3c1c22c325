"""`PrivateEmbeddingBag` against nn.EmbeddingBag, bit for bit."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nescio.errors import ArgumentError, IndexRangeError
from pytorch.lookups import Recorded, stored

torch = pytest.importorskip("torch")
PrivateEmbeddingBag = pytest.importorskip("nescio.torch").PrivateEmbeddingBag
nn = torch.nn

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
MODES = ["sum", "mean", "max"]
ROWS = 40


def pair(mode="mean", columns=16, dtype=torch.float32, **options):
    """Returns a plain module and the private one with its rows."""
    torch.manual_seed(columns)
    plain = nn.EmbeddingBag(ROWS, columns, mode=mode, **options).to(dtype).eval()
    lookups = Recorded(stored(plain.weight))
    return plain, PrivateEmbeddingBag(lookups, mode=mode, dtype=dtype, **options)


def random(*shape, below=ROWS):
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(11))


def same(found, expected):
    """Compares values, dtypes and shapes; the bits too, but for the sign of zero and NaN."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert torch.equal(found, expected.detach())
    assert not found.requires_grad


OFFSETS = torch.tensor([0, 0, 5, 12, 12, 13])  # with empty bags, of 30 indices


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [None, 0, 3, -1])
def test_bags_are_those_of_the_plain_module(dtype, mode, padding):
    """Few different indices, so that padding and duplicates occur in most bags."""
    for columns in (1, 7, 16, 130):
        plain, private = pair(mode, columns, dtype, padding_idx=padding)
        for below in (4, ROWS):
            x, flat = random(5, 7, below=below), random(30, below=below)
            same(private(x), plain(x))
            same(private(flat, OFFSETS), plain(flat, OFFSETS))
            same(private(flat, offsets=OFFSETS.int()), plain(flat, OFFSETS.int()))
            same(private(flat.int(), OFFSETS), plain(flat.int(), OFFSETS))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("padding", [None, 2])
def test_weights_of_samples(dtype, padding):
    plain, private = pair("sum", dtype=dtype, padding_idx=padding)
    x, flat = random(5, 7, below=5), random(30, below=5)
    weights = torch.randn(30, generator=torch.Generator().manual_seed(1)).to(dtype)
    same(private(flat, OFFSETS, weights), plain(flat, OFFSETS, weights))
    needs_gradient = weights.clone().requires_grad_()
    same(private(flat, OFFSETS, needs_gradient), plain(flat, OFFSETS, weights))
    more = torch.randn(5, 7, generator=torch.Generator().manual_seed(2)).to(dtype)
    same(private(x, per_sample_weights=more), plain(x, per_sample_weights=more))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [None, 3])
def test_a_last_offset(mode, padding):
    plain, private = pair(mode, padding_idx=padding, include_last_offset=True)
    flat, offsets = random(30), torch.cat([OFFSETS, torch.tensor([30])])
    same(private(flat, offsets), plain(flat, offsets))
    same(private(flat[:0], offsets[:1]), plain(flat[:0], offsets[:1]))
    same(private(random(5, 7)), plain(random(5, 7)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [None, 3])
def test_no_indices_and_no_bags(mode, padding):
    plain, private = pair(mode, padding_idx=padding)
    none = random(0)
    for offsets in (torch.tensor([0, 0, 0]), none):
        same(private(none, offsets), plain(none, offsets))
    same(private(random(0, 4)), plain(random(0, 4)))
    only_padding = torch.full((2, 3), 3)
    same(private(only_padding), plain(only_padding))


@pytest.mark.parametrize("mode", MODES)
def test_values_that_are_no_numbers(mode):
    plain, _ = pair(mode)
    with torch.no_grad():
        plain.weight[:4, 0] = torch.tensor([float("nan"), -0.0, float("inf"), -float("inf")])
    private = PrivateEmbeddingBag(Recorded(stored(plain.weight)), mode=mode)
    for bag in itertools.product(range(5), repeat=2):
        x = torch.tensor([bag])
        torch.testing.assert_close(private(x), plain(x), rtol=0, atol=0, equal_nan=True)


@given(st.data())
def test_any_bags(data):
    mode, padding = data.draw(st.sampled_from(MODES)), data.draw(st.sampled_from([None, 1]))
    lengths = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))
    flat = torch.tensor(
        data.draw(st.lists(st.integers(0, 4), min_size=sum(lengths), max_size=sum(lengths))),
        dtype=torch.int64,
    )
    offsets = torch.tensor(np.cumsum([0, *lengths[:-1]]))
    plain, private = pair(mode, padding_idx=padding)
    same(private(flat, offsets), plain(flat, offsets))


@pytest.mark.gpu
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [None, 3])
def test_bags_on_a_gpu(mode, padding):
    if not torch.cuda.is_available():
        pytest.skip("this machine has no GPU that PyTorch can use")
    plain, private = pair(mode, padding_idx=padding)
    x, flat = random(5, 7, below=5).cuda(), random(30, below=5).cuda()
    plain.cuda()
    same(private(x), plain(x))
    same(private(flat, OFFSETS.cuda()), plain(flat, OFFSETS.cuda()))
    assert private(x).device == private.last_missing.device == x.device


def test_it_follows_the_dtype_of_a_model():
    plain, private = pair("sum")
    plain, private = plain.to(torch.bfloat16), private.to(torch.bfloat16)
    same(private(random(3, 4)), plain(random(3, 4)))


def test_the_state_of_a_plain_module():
    plain, private = pair()
    private.load_state_dict(plain.state_dict())
    assert private.state_dict() == {}
    text = "PrivateEmbeddingBag(40, 16, padding_idx=2, mode='max')"
    assert repr(pair("max", padding_idx=2)[1]) == text


def test_training_is_refused():
    with pytest.raises(ArgumentError, match="found training mode"):
        pair()[1].train()(random(2, 2))


# ---- bad input: refused before anything is sent --------------------------------------------------

FLAT = random(30)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((FLAT,), r"input: found shape \(30,\) and offsets None, expected two dimensions, or"),
        ((random(2, 3, 4),), r"input: found shape \(2, 3, 4\) and offsets None"),
        ((torch.tensor(3), torch.tensor([0])), r"found shape \(\) and offsets \(1,\)"),
        ((random(2, 3), torch.tensor([0])), "offsets: found a tensor, expected None"),
        ((random(3, 0),), "input: found bags of no index, expected at least one"),
        ((FLAT.float(), OFFSETS), "input: found torch.float32, expected int32 or int64"),
        (([1, 2], OFFSETS), "input: found list"),
        ((FLAT, [0, 3]), "offsets: found list"),
        ((FLAT, OFFSETS.float()), "offsets: found torch.float32"),
        ((FLAT, OFFSETS.reshape(2, 3)), r"offsets: found shape \(2, 3\), expected one dimension"),
        ((FLAT, OFFSETS[:0]), r"offsets: found shape \(0,\), expected one dimension with an"),
        ((FLAT, OFFSETS + 1), r"found \[1, 1, .*expected increasing numbers from 0 to 30, the num"),
        ((FLAT, torch.tensor([0, 31])), "expected increasing numbers from 0 to 30"),
        ((FLAT, torch.tensor([0, 5, 4])), "expected increasing numbers"),
        ((FLAT, torch.tensor([0, -1, 4])), "expected increasing numbers"),
        ((torch.nested.nested_tensor([FLAT, FLAT[1:]], layout=torch.jagged),), "a nested tensor"),
    ],
    ids=repr,
)
def test_arguments_that_are_no_bags(arguments, said):
    _, private = pair()
    with pytest.raises(ArgumentError, match=said):
        private(*arguments)
    assert private.lookups.sent == []


def test_a_last_offset_that_is_not_the_last():
    _, private = pair(include_last_offset=True)
    for offsets in (torch.tensor([0, 29]), torch.tensor([], dtype=torch.int64)):
        with pytest.raises(ArgumentError, match="offsets: found"):
            private(FLAT, offsets)
    assert private.lookups.sent == []


@pytest.mark.parametrize(
    ("mode", "weights", "said"),
    [
        ("mean", torch.ones(30), "per_sample_weights: found mode 'mean', expected 'sum'"),
        ("max", torch.ones(30), "found mode 'max'"),
        ("sum", torch.ones(29), r"found torch.float32 of shape \(29,\), expected .*\(30,\)"),
        ("sum", torch.ones(30).double(), "found torch.float64 of shape .*expected torch.float32"),
        ("sum", [1.0] * 30, "found list, expected a tensor"),
    ],
    ids=str,
)
def test_weights_that_do_not_fit(mode, weights, said):
    _, private = pair(mode)
    with pytest.raises(ArgumentError, match=said):
        private(FLAT, OFFSETS, weights)
    assert private.lookups.sent == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "median"}, "mode: found 'median', expected sum, mean, max"),
        ({"max_norm": 2}, "max_norm: found 2"),
        ({"sparse": True}, "sparse: found True"),
        ({"missing": "none"}, "missing: found 'none', expected 'zeros' or 'error' or 'skip' or"),
    ],
    ids=str,
)
def test_options_that_it_cannot_have(options, said):
    with pytest.raises(ArgumentError, match=said):
        PrivateEmbeddingBag(Recorded(np.zeros((4, 2), "f4")), **options)


def test_indices_outside_the_table():
    _, private = pair()
    with pytest.raises(IndexRangeError, match="found 40, expected 0 to 39"):
        private(torch.tensor([[1, 40]]))
    assert private.lookups.sent == []
