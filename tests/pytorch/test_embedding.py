"""`PrivateEmbedding` against nn.Embedding, bit for bit."""

import copy
import hashlib
import io
import pickle

import numpy as np
import pytest

import nescio
from nescio.errors import ArgumentError, IndexRangeError, MismatchError
from pytorch.lookups import Recorded, stored

torch = pytest.importorskip("torch")
PrivateEmbedding = pytest.importorskip("nescio.torch").PrivateEmbedding
nn = torch.nn

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


def pair(rows=60, columns=8, dtype=torch.float32, **options):
    """Returns a plain module and the private one with its rows."""
    torch.manual_seed(rows * columns)
    plain = nn.Embedding(rows, columns, **options).to(dtype).eval()
    lookups = Recorded(stored(plain.weight))
    kept = {"padding_idx": plain.padding_idx, "dtype": dtype}
    return plain, PrivateEmbedding(lookups, **kept)


def indices(*shape, dtype=torch.int64, below=60):
    generator = torch.Generator().manual_seed(7)
    return torch.randint(below, shape, generator=generator, dtype=dtype)


def same(found, expected):
    assert (found.dtype, found.shape, found.device) == (
        expected.dtype,
        expected.shape,
        expected.device,
    )
    assert torch.equal(
        found.contiguous().view(torch.uint8), expected.detach().contiguous().view(torch.uint8)
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("columns", [1, 7, 8, 300])
def test_rows_are_those_of_the_plain_module(dtype, columns):
    plain, private = pair(columns=columns, dtype=dtype)
    x = indices(3, 5)
    same(private(x), plain(x))


@pytest.mark.parametrize("shape", [(), (1,), (9,), (2, 3), (2, 3, 4), (0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_inputs_of_any_shape(shape, dtype):
    plain, private = pair()
    x = indices(*shape, dtype=dtype)
    same(private(input=x), plain(x))


def test_special_values_and_padding_are_those_of_the_table():
    plain, private = pair(padding_idx=-2)
    with torch.no_grad():
        plain.weight[:4, 0] = torch.tensor([float("nan"), -0.0, float("inf"), 1e-45])
        plain.weight[58] = 3.0  # a padding row that was changed after all
    private = PrivateEmbedding(Recorded(stored(plain.weight)), padding_idx=-2)
    assert private.padding_idx == plain.padding_idx == 58
    x = torch.tensor([[0, 1, 2, 3], [58, 58, 1, 59]])
    same(private(x), plain(x))


def test_inputs_that_are_not_contiguous():
    plain, private = pair()
    x = indices(6, 5)
    for view in (x.T, x[:, ::2], x[0].expand(3, 5), x.to_sparse().to_dense()[1:]):
        same(private(view), plain(view))


@pytest.mark.parametrize("order", ["<f4", ">f4"])
def test_tables_in_either_byte_order(order):
    plain, _ = pair()
    private = PrivateEmbedding(Recorded(plain.weight.detach().numpy().astype(order)))
    same(private(indices(4)), plain(indices(4)))


def test_there_is_no_gradient_and_no_state():
    _, private = pair()
    assert not private(indices(3)).requires_grad
    with torch.no_grad():
        assert not private(indices(3)).requires_grad
    with torch.inference_mode():
        assert private(indices(3)).is_inference()
    assert list(private.parameters()) == []
    assert private.state_dict() == {}
    assert not hasattr(private, "weight")
    with pytest.raises(AttributeError, match="PrivateEmbedding has no weight: its rows are on"):
        _ = private.weight
    assert (private.num_embeddings, private.embedding_dim) == (60, 8)
    assert repr(pair(padding_idx=3)[1]) == "PrivateEmbedding(60, 8, padding_idx=3)"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_it_follows_the_dtype_of_a_model(dtype):
    plain, private = pair()
    same(private.to(dtype)(indices(4)), plain.to(dtype)(indices(4)))


@pytest.mark.gpu
def test_rows_are_on_the_device_of_the_input():
    if not torch.cuda.is_available():
        pytest.skip("this machine has no GPU that PyTorch can use")
    plain, private = pair()
    x = indices(3, 5).cuda()
    same(private(x), plain.cuda()(x))
    assert private.last_missing.device == x.device


def test_nothing_is_missing_in_an_ordinary_table():
    _, private = pair()
    assert private.last_missing is None
    private(indices(3, 5))
    assert private.last_missing.shape == (3, 5)
    assert not private.last_missing.any()


def test_training_is_refused_before_anything_is_sent():
    _, private = pair()
    model = nn.Sequential(private, nn.Linear(8, 2)).train()
    with pytest.raises(ArgumentError, match="found training mode, expected evaluation: call .eval"):
        model(indices(3))
    assert private.lookups.sent == []
    assert model.eval()(indices(3)).shape == (3, 2)


# ---- states and copies ---------------------------------------------------------------------------


def test_the_state_of_a_plain_model_goes_into_the_private_one():
    plain, private = pair()
    torch.manual_seed(3)
    model = nn.Sequential(plain, nn.Linear(8, 2))
    other = nn.Sequential(private, nn.Linear(8, 2)).eval()
    result = other.load_state_dict(model.state_dict())
    assert (result.missing_keys, result.unexpected_keys) == ([], [])
    same(other(indices(4)), model(indices(4)))
    assert set(other.state_dict()) == {"1.weight", "1.bias"}
    model.load_state_dict(other.state_dict() | {"0.weight": plain.weight})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w[:59], r"0.weight: found float32 of shape \(59, 8\), expected float32 of"),
        (lambda w: w.half(), r"found float16 of shape \(60, 8\), expected float32 of shape"),
        (lambda w: w + 1, "found a weight with the digest .*, expected "),
    ],
    ids=["shape", "dtype", "values"],
)
def test_the_weight_of_another_model_is_unexpected(change, said):
    plain, _ = pair()
    digest = hashlib.sha256(stored(plain.weight).tobytes()).hexdigest()
    private = PrivateEmbedding(Recorded(stored(plain.weight)), weight_digest=digest)
    model = nn.Sequential(private)
    assert not model.load_state_dict({"0.weight": plain.weight}).unexpected_keys
    state = {"0.weight": change(plain.weight.detach())}
    with pytest.warns(UserWarning, match=said), pytest.raises(RuntimeError, match="Unexpected key"):
        model.load_state_dict(state)
    with pytest.warns(UserWarning, match="the servers' rows stay as they are"):
        assert model.load_state_dict(state, strict=False).unexpected_keys == ["0.weight"]


def test_unknown_keys_are_unexpected_as_ever():
    model = nn.Sequential(pair()[1])
    with pytest.raises(RuntimeError, match='Unexpected key.*"0.bias"'):
        model.load_state_dict({"0.bias": torch.zeros(3)})


def test_a_copy_shares_the_connections():
    plain, private = pair()
    copied = copy.deepcopy(nn.Sequential(private, nn.Linear(8, 2)))
    assert copied[0] is not private
    assert copied[0].lookups is private.lookups
    same(copied[0](indices(4)), plain(indices(4)))
    assert private.last_missing is None


def test_it_cannot_be_pickled():
    _, private = pair()
    for save in (pickle.dumps, lambda model: torch.save(model, io.BytesIO())):
        with pytest.raises(
            ArgumentError, match=r"cannot keep the connections.*nescio\.torch\.load"
        ):
            save(nn.Sequential(private))


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([1, 2], "input: found list, expected a tensor of int32 or int64"),
        (torch.tensor([1.0]), "found torch.float32, expected int32 or int64"),
        (torch.tensor([True]), "found torch.bool"),
        (torch.tensor([1], dtype=torch.int16), "found torch.int16"),
        (torch.tensor([1], dtype=torch.uint8), "found torch.uint8"),
        (None, "found NoneType"),
    ],
    ids=str,
)
def test_inputs_that_are_not_indices(x, said):
    _, private = pair()
    with pytest.raises(ArgumentError, match=said):
        private(x)
    assert private.lookups.sent == []


@pytest.mark.parametrize("index", [-1, 60, 1 << 40])
def test_indices_outside_the_table(index):
    _, private = pair()
    with pytest.raises(IndexRangeError, match=f"found {index}, expected 0 to 59"):
        private(torch.tensor([[1, 2], [3, index]]))
    assert private.lookups.sent == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_norm": 1.0}, "max_norm: found 1.0, expected None: .*renormalize the weight"),
        ({"sparse": True}, "sparse: found True, expected False: .*no gradient"),
        ({"padding_idx": 60}, "padding_idx: found 60, expected -60 to 59"),
        ({"padding_idx": -61}, "padding_idx: found -61"),
        ({"padding_idx": 1.5}, "padding_idx: found 1.5, expected an integer"),
        ({"dtype": torch.bfloat16}, "found a table of float32, expected one that stores torch.bf"),
        ({"dtype": torch.int64}, "found a table of float32, expected one that stores torch.int64"),
        ({"missing": "mean"}, "missing: found 'mean', expected 'zeros' or 'error' or a tensor"),
        ({"missing": "skip"}, "found 'skip', expected 'zeros' or 'error'"),
        ({"missing": torch.zeros(7)}, r"found torch.float32 of shape \(7,\), expected .* \(8,\)"),
        ({"missing": torch.zeros(8, dtype=int)}, "found torch.int64 of shape"),
    ],
    ids=str,
)
def test_options_that_it_cannot_have(options, said):
    lookups = Recorded(np.zeros((60, 8), "f4"))
    with pytest.raises(ArgumentError, match=said):
        PrivateEmbedding(lookups, **options)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((5, 3), "u2"), "found a table of uint16, expected .*pass dtype=torch.bfloat16"),
        (np.zeros((5, 3), "i8"), "found a table of int64, expected float16, float32 or float64"),
        (np.zeros((5, 3), "c8"), "found a table of complex64"),
        (np.zeros(5, "f4"), r"found rows of shape \(\), expected vectors"),
        (np.zeros((5, 3, 2), "f4"), r"found rows of shape \(3, 2\), expected vectors"),
    ],
    ids=str,
)
def test_tables_without_vectors_of_floats(array, said):
    with pytest.raises(ArgumentError, match=said):
        PrivateEmbedding(Recorded(array))


@pytest.mark.parametrize("lookups", [None, [1], np.zeros((3, 3)), nn.Embedding(3, 3)], ids=type)
def test_lookups_that_are_none(lookups):
    with pytest.raises(ArgumentError, match="lookups: found .*, expected lookups of a table"):
        PrivateEmbedding(lookups)


def test_a_table_in_bins_has_no_rows_to_count():
    table = nescio.Table(np.zeros((6, 3), "f4"), bins=[(2, 3)])
    with pytest.raises(ArgumentError, match="lookups: found 6 rows .* in 2 bins .*in one bin"):
        PrivateEmbedding(nescio.pir.LocalTable(table, threads=1))


def test_a_table_that_was_replaced_by_another():
    _, private = pair()
    other = Recorded(np.zeros((60, 9), "f4"))
    private.lookups.lookup = other.lookup
    with pytest.raises(MismatchError, match=r"\(3, 9\), expected .*\(3, 8\); the servers have"):
        private(indices(3))
