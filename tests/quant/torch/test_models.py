"""PyTorch models: quantized by plan, saved, and used without PyTorch."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError, FileError

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
qt = pytest.importorskip("nescio.quant.torch")
training = qt.training
nn = torch.nn


class Language(nn.Module):
    """Model with its own forward() and a layer of every kind."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embedding = nn.Embedding(50, 12)
        self.rnn = nn.LSTM(12, 20, 2, bidirectional=True, batch_first=True, dropout=0.5)
        self.gru = nn.GRU(40, 15)
        self.lstm_cell, self.gru_cell = nn.LSTMCell(15, 9), nn.GRUCell(9, 7, bias=False)
        self.head = nn.Sequential(nn.Dropout(), nn.Linear(7, 70), nn.ReLU(), nn.Linear(70, 50))
        self.offset = nn.Parameter(torch.randn(50))
        self.register_buffer("steps", torch.arange(3))

    def forward(self, tokens):
        x, _ = self.rnn(self.embedding(tokens))
        x, _ = self.gru(x)
        h, _ = self.lstm_cell(x[:, -1])
        return self.head(self.gru_cell(h)) + self.offset


PLAN = {
    "rnn": (4, 8),
    "gru": (2, 16),
    "lstm_cell": (3, 32),
    "gru_cell": (8, 8),
    "head.*": (1, 16),
    "head.3": (5, 8),
}
TOKENS = torch.randint(50, (4, 6), generator=torch.Generator().manual_seed(4))


@pytest.fixture
def model():
    return Language().eval()


@pytest.fixture
def small(model):
    return qt.quantize(model, PLAN)


def test_named_modules_are_replaced_and_others_are_not(model, small):
    kinds = {name: type(module).__name__ for name, module in small.named_modules()}
    assert kinds["rnn"] == "BitSerialLSTM"
    assert kinds["gru"] == "BitSerialGRU"
    assert kinds["lstm_cell"] == "BitSerialLSTMCell"
    assert kinds["gru_cell"] == "BitSerialGRUCell"
    assert kinds["head.1"] == kinds["head.3"] == "BitSerialLinear"
    assert kinds["embedding"] == "Embedding"
    assert (small.head[1].weight_bits, small.head[3].weight_bits) == (1, 5)
    assert type(model.rnn) is nn.LSTM
    assert small.offset is not model.offset
    assert not small.training
    fine = qt.quantize(model, {"rnn": (8, 16), "*cell": (8, 16), "head.*": (8, 16)})
    assert (fine(TOKENS) - model(TOKENS)).abs().max() < 0.1


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_sequences_as_pytorch_has_them(kind, both, first):
    torch.manual_seed(5)
    layer = kind(10, 9, num_layers=2, bidirectional=both, batch_first=first, bias=first)
    small = qt.quantize(layer, {"": (8, 32)})
    x = torch.randn(4, 3, 10)
    state = torch.randn(4 if both else 2, 4 if first else 3, 9)
    given = (state, state.flip(0)) if kind is nn.LSTM else state
    for arguments in ((x,), (x, given), (x[0],)):
        expected, end = layer(*arguments)
        found, same = small(*arguments)
        torch.testing.assert_close(found, expected, rtol=0, atol=0.05)
        torch.testing.assert_close(same, end, rtol=0, atol=0.1)
    assert torch.equal(small(x, given)[0], copy.deepcopy(small)(x, given)[0])
    assert torch.equal(small(x)[0], pickle.loads(pickle.dumps(small))(x)[0])


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell])
def test_cells_as_pytorch_has_them(kind):
    torch.manual_seed(6)
    cell = kind(10, 9)
    small = qt.quantize(cell, {"": (8, 32)})
    x, h = torch.randn(3, 10), torch.randn(3, 9)
    given = (h, -h) if kind is nn.LSTMCell else h
    for arguments in ((x,), (x, given), (x[0],)):
        expected, found = cell(*arguments), small(*arguments)
        torch.testing.assert_close(found, expected, rtol=0, atol=0.05)


def test_recurrent_layers_have_no_gradient(small):
    x = torch.randn(4, 6, 12, requires_grad=True)
    with pytest.raises(ArgumentError, match="has no gradient"):
        small.rnn(x)[0].sum().backward()
    h = torch.randn(4, 9, requires_grad=True)
    with pytest.raises(ArgumentError, match="has no gradient"):
        small.lstm_cell(torch.randn(4, 15), (h, h))[1].sum().backward()


def test_states_go_round(model, small):
    other = qt.quantize(Language().eval(), PLAN)
    with torch.no_grad():
        for tensor in (*other.parameters(), *other.buffers()):
            tensor.zero_()
    for module in other.modules():
        if isinstance(module, qt.BitSerialLinear):
            module.sizes = module._sizes()
    other.load_state_dict(small.state_dict())
    assert torch.equal(other(TOKENS), small(TOKENS))
    finer = qt.quantize(model, {**PLAN, "rnn": (5, 8)})
    with pytest.raises(ArgumentError, match=r"rnn\.ih_l0\.planes: found .*\(4, .*\(5, "):
        finer.load_state_dict(small.state_dict())


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import numpy as np
from nescio import quant

model = quant.load("model.safetensors")
x = np.load("x.npz")
embedded = model["embedding"](x["tokens"])
outputs, _ = model["rnn"](x["embedded"])
more, _ = model["gru"](outputs)
h, _ = model["lstm_cell"](more[:, -1])
head = model["head"](model["gru_cell"](h)) + model.arrays()["offset"]
np.savez("y.npz", embedded=embedded, outputs=outputs, more=more, h=h, head=head)
assert not any(name.startswith("torch.") for name in sys.modules)
"""


def test_it_predicts_the_same_bits_without_pytorch(small, tmp_path):
    quant.save(small, tmp_path / "model.safetensors")
    embedded = small.embedding(TOKENS).detach()
    np.savez(tmp_path / "x.npz", tokens=TOKENS.numpy(), embedded=embedded.numpy())
    code = [sys.executable, "-c", WITHOUT_TORCH]
    done = subprocess.run(code, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    y = np.load(tmp_path / "y.npz")
    with torch.no_grad():
        outputs, _ = small.rnn(embedded)
        more, _ = small.gru(outputs)
        h, _ = small.lstm_cell(more[:, -1])
        expected = {"embedded": embedded, "outputs": outputs, "more": more, "h": h}
        expected["head"] = small(TOKENS)
    for name, tensor in expected.items():
        assert y[name].tobytes() == tensor.numpy().tobytes(), name


def test_a_sequential_model_is_called_as_it_is(tmp_path):
    torch.manual_seed(7)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 30), nn.ReLU(), nn.Linear(30, 4))
    small, x = qt.quantize(model, {"*": (4, 8)}), torch.randn(5, 3, 4)
    quant.save(small, tmp_path / "small")
    assert quant.load(tmp_path / "small")(x.numpy()).tobytes() == small(x).numpy().tobytes()
    quant.save(model, tmp_path / "floats")
    floats = quant.load(tmp_path / "floats")
    np.testing.assert_allclose(floats(x.numpy()), model(x).detach().numpy(), atol=1e-5)
    again = quant.quantize(floats, {"*": (4, 8)})  # which needs no PyTorch
    assert again(x.numpy()).tobytes() == small(x).numpy().tobytes()


def test_a_file_goes_back_into_pytorch(model, small, tmp_path):
    quant.save(small, tmp_path / "model")
    fresh = Language().eval()
    with torch.no_grad():
        fresh.embedding.weight.zero_()
        fresh.offset.zero_()
    loaded = qt.load(tmp_path / "model", fresh)
    assert torch.equal(loaded(TOKENS), small(TOKENS))
    part = qt.quantize(model, {"head.1": (2, 8)})  # recurrent layers stay in floats
    quant.save(part, tmp_path / "part")
    assert torch.equal(qt.load(tmp_path / "part", fresh)(TOKENS), part(TOKENS))


def test_files_of_other_models(small, tmp_path):
    quant.save(small, tmp_path / "model")
    other = Language()
    other.embedding = nn.Embedding(51, 12)
    with pytest.raises(FileError) as caught:
        qt.load(tmp_path / "model", other)
    assert "embedding.weight: found shape (50, 12) in the file" in str(caught.value)
    more = Language()
    more.extra = nn.Linear(3, 3)
    with pytest.raises(FileError, match="extra.weight: found nothing in the file"):
        qt.load(tmp_path / "model", more)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"rn": (4, 8)}, "found no such layer, expected a name such as 'rnn'"),
        ({"embedding": (4, 8)}, "'embedding', found a Embedding, expected a Linear, LSTM"),
        ({"*": (4, 8)}, "found a Language"),
        ({"e*": (4, 8)}, "found a Embedding"),
        ({"head.2": (4, 8)}, "found a ReLU"),
        ({"head.3": (0, 8)}, "weight bits: found 0"),
        ({"head.3": (4, 10)}, "activation bits: found 10"),
    ],
)
def test_plans_that_do_not_fit(model, plan, said):
    with pytest.raises(ArgumentError) as caught:
        qt.quantize(model, plan)
    assert said in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype:UserWarning")
@pytest.mark.parametrize("planned", ["linear1", "linear2", "linear*"])
def test_transformers_leave_their_fast_path(planned):
    """PyTorch's fast path reads both layers' weights, in eval() and without gradients."""
    torch.manual_seed(9)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(3, 5, 8)
    padding = torch.arange(5) >= torch.tensor([[3], [5], [4]])
    small = qt.quantize(model, {f"layers.0.{planned}": (8, 16), "layers.1.linear2": (8, 16)})
    trained = training.prepare(model, {f"layers.0.{planned}": (8, 16)}).eval()
    assert model.layers[0].activation_relu_or_gelu  # the original keeps it
    with torch.no_grad():
        for given in ({}, {"src_key_padding_mask": padding}):
            expected = model(x, **given)
            valid = ~padding if given else torch.ones(3, 5, dtype=torch.bool)
            for other in (small, copy.deepcopy(small), trained):
                found = other(x, **given)[:, : expected.shape[1]]
                torch.testing.assert_close(
                    found[valid[:, : found.shape[1]]],
                    expected[valid[:, : found.shape[1]]],
                    rtol=0,
                    atol=0.1,
                )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: qt.BitSerialLSTM(3, 4, 0), "num_layers: found 0, expected 1 to"),
        (lambda: qt.BitSerialGRU(3, 4, "a"), "num_layers: found 'a'"),
        (lambda: qt.BitSerialGRU(3.0, 4), "input_size: found 3.0"),
        (lambda: qt.BitSerialLSTMCell(3, 0), "hidden_size: found 0"),
    ],
)
def test_sizes_that_cannot_be(make, said):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert said in str(caught.value)


def test_nothing_is_quantized_twice(small):
    with pytest.raises(ArgumentError, match="found a BitSerialL"):
        qt.quantize(small, {"rnn": (4, 8)})
    with pytest.raises(ArgumentError, match="found a BitSerialLinear"):
        qt.quantize(small, {"head.*": (4, 8)})


def test_modules_that_would_lose_something(model):
    hook = model.head[1].register_forward_hook(lambda *_: None)
    with pytest.raises(ArgumentError, match="plan, 'head.1': found hooks on it"):
        qt.quantize(model, {"head.1": (4, 8)})
    hook.remove()
    with pytest.raises(ArgumentError, match="'': proj_size: found 2, expected 0"):
        qt.quantize(nn.LSTM(3, 4, proj_size=2), {"": (4, 8)})
    with torch.no_grad():
        model.rnn.weight_hh_l1[2, 3] = torch.nan
    with pytest.raises(ArgumentError, match="'rnn': weights: found nan at row 2, column 3"):
        qt.quantize(model, {"rnn": (4, 8)})


@pytest.mark.parametrize("name", ["", "head", "head.1", "head.2", "rnn"])
@pytest.mark.parametrize("before", [False, True])
def test_hooks_are_not_lost_in_a_file(small, tmp_path, name, before):
    module = small.get_submodule(name)
    hook = (module.register_forward_pre_hook if before else module.register_forward_hook)(print)
    with pytest.raises(ArgumentError, match=f"'{name}': found hooks on it, which would be lost"):
        quant.save(small, tmp_path / "model")
    hook.remove()
    quant.save(small, tmp_path / "model")


def test_models_that_are_none(tmp_path):
    with pytest.raises(ArgumentError, match="model: found dict, expected a torch.nn.Module"):
        qt.quantize({}, {"a": (4, 8)})
    with pytest.raises(ArgumentError, match="model: found dict, expected a PyTorch module"):
        quant.save({}, tmp_path / "model")
    with pytest.raises(ArgumentError, match="Flatten: found axes"):
        quant.save(nn.Sequential(nn.Flatten(0)), tmp_path / "model")


def test_packed_sequences_are_refused(small):
    packed = nn.utils.rnn.pack_sequence([torch.randn(4, 12), torch.randn(2, 12)])
    with pytest.raises(ArgumentError, match=r"found PackedSequence, expected a tensor"):
        small.rnn(packed)


def test_a_search_over_modules(model):
    from nescio.quant.search import search_model  # noqa: PLC0415

    reference = model(TOKENS).detach()
    seen = []

    def quality(small):
        seen.append(small)
        return -float((small(TOKENS) - reference).abs().mean())

    found = search_model(
        model,
        quality,
        layers=["rnn", "head.1"],
        weight_bits=[1, 8],
        activation_bits=[8, 32],
        cost=lambda name, bits: float(bits[0]),
    )
    assert len(found.points) == 16
    best = max(found.points, key=lambda point: point.quality)
    assert best.plan["rnn"][0] == 8
    for point, small in zip(found.points, seen, strict=True):
        assert torch.equal(small(TOKENS), qt.quantize(model, point.plan)(TOKENS))
        assert small.embedding.weight is model.embedding.weight
