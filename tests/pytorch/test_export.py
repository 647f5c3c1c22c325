"""`export` and `load`: a model cut in two, and put together again."""

import json
import pickle

import numpy as np
import pytest

from nescio.errors import ArgumentError, FileError
from pytorch.lookups import served
from pytorch.models import Language, Recommender, language, nn, recommender, torch

nt = pytest.importorskip("nescio.torch")
qt = pytest.importorskip("nescio.quant.torch")


def test_a_model_goes_round(tmp_path):
    model, x = recommender()
    params = nt.export(model, tmp_path / "out")
    lookups = served(tmp_path / "out")
    assert set(params) == set(lookups) == {"items", "users", "targets"}
    assert {name: one.params for name, one in lookups.items()} == params
    private = nt.load(Recommender, tmp_path / "out", lookups)
    assert torch.equal(private(*x), model(*x))
    kinds = {name: type(part).__name__ for name, part in private.named_children()}
    assert kinds["items"] == "PrivateEmbeddingBag"
    assert kinds["users"] == kinds["targets"] == "PrivateEmbedding"
    assert private.items.padding_idx == 0
    assert not private.training
    rest = set(model.state_dict()) - {"items.weight", "users.weight", "targets.weight"}
    assert set(private.state_dict()) == rest
    assert type(model.items) is nn.EmbeddingBag


def test_the_files_hold_each_weight_once(tmp_path):
    model, _ = recommender()
    nt.export(model, tmp_path, version="7")
    found = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert found == [
        "device/model.json",
        "device/model.safetensors",
        "servers/items.npy",
        "servers/targets.npy",
        "servers/users.npy",
    ]
    weight = model.items.weight.detach().numpy()
    assert np.load(tmp_path / "servers" / "items.npy").tobytes() == weight.tobytes()
    stored = (tmp_path / "device" / "model.safetensors").read_bytes()
    assert weight[5].tobytes() not in stored
    assert model.head[0].weight.detach().numpy().tobytes() in stored
    described = json.loads((tmp_path / "device" / "model.json").read_text())
    assert described["tables"]["items"]["version"] == "7"
    assert described["tables"]["items"]["rows"] == 200
    assert described["modules"]["items"]["mode"] == "mean"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_models_of_other_dtypes(tmp_path, dtype):
    model, x = recommender()
    model = model.to(dtype)
    nt.export(model, tmp_path)
    private = nt.load(lambda: Recommender().to(dtype), tmp_path, served(tmp_path))
    assert torch.equal(private(*x), model(*x))
    name = str(dtype).removeprefix("torch.")
    described = json.loads((tmp_path / "device" / "model.json").read_text())
    assert described["tables"]["users"]["dtype"] == name
    expected = "uint16" if name == "bfloat16" else name
    assert np.load(tmp_path / "servers" / "users.npy").dtype == expected
    with pytest.raises(FileError, match=f"belongs to another model: .*is {name} of shape"):
        nt.load(Recommender, tmp_path, served(tmp_path))


def test_the_device_needs_its_own_folder_alone(tmp_path):
    model, x = recommender()
    nt.export(model, tmp_path / "out")
    lookups = served(tmp_path / "out")
    device = (tmp_path / "out" / "device").rename(tmp_path / "phone")
    assert torch.equal(nt.load(Recommender, str(device), lookups)(*x), model(*x))


def test_an_instance_is_copied(tmp_path):
    model, x = recommender()
    nt.export(model, tmp_path)
    instance = Recommender()
    before = instance.head[0].weight.clone()
    private = nt.load(instance, tmp_path, served(tmp_path))
    assert torch.equal(private(*x), model(*x))
    assert type(instance.items) is nn.EmbeddingBag
    assert torch.equal(instance.head[0].weight, before)


def test_embeddings_of_the_plain_model_need_no_memory(tmp_path):
    model, x = recommender()
    nt.export(model, tmp_path)
    private = nt.load(lambda: Recommender(device="meta"), tmp_path, served(tmp_path))
    assert torch.equal(private(*x), model(*x))
    with torch.device("meta"):
        whole = Recommender()
    assert torch.equal(nt.load(whole, tmp_path, served(tmp_path))(*x), model(*x))


def test_a_module_alone(tmp_path):
    torch.manual_seed(1)
    plain = nn.Embedding(20, 3)
    assert list(nt.export(plain, tmp_path)) == ["embedding"]
    private = nt.load(plain, tmp_path, served(tmp_path))
    assert torch.equal(private(torch.arange(20)), plain.weight)


def test_some_modules_and_names_of_tables(tmp_path):
    model, x = recommender()
    nt.export(model, tmp_path / "a", tables=["items"])
    private = nt.load(Recommender, tmp_path / "a", served(tmp_path / "a"))
    assert type(private.users) is nn.Embedding
    assert torch.equal(private(*x), model(*x))
    nt.export(model, tmp_path / "b", tables={"items": "films", "users": "people"})
    lookups = served(tmp_path / "b")
    assert set(lookups) == {"films", "people"}
    assert torch.equal(nt.load(Recommender, tmp_path / "b", lookups)(*x), model(*x))


def test_nothing_in_the_files_is_a_pickle(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError

    model, x = recommender()
    for name in ("dump", "dumps", "load", "loads"):
        monkeypatch.setattr(pickle, name, forbidden)
    nt.export(model, tmp_path)
    private = nt.load(Recommender, tmp_path, served(tmp_path))
    assert torch.equal(private(*x), model(*x))


# ---- weights that are shared ---------------------------------------------------------------------


class Shared(nn.Module):
    """One module under two names, and another module with its weight."""

    def __init__(self):
        super().__init__()
        self.a = nn.Embedding(20, 3)
        self.b = self.a
        self.c = nn.EmbeddingBag(20, 3, mode="sum")
        self.c.weight = self.a.weight

    def forward(self, x):
        return self.a(x).sum(1) + 2 * self.b(x).sum(1) + self.c(x)


def test_modules_that_share_a_weight_share_a_table(tmp_path):
    torch.manual_seed(1)
    model, x = Shared(), torch.arange(8).reshape(2, 4)
    assert list(nt.export(model, tmp_path / "out")) == ["a"]
    private = nt.load(Shared, tmp_path / "out", served(tmp_path / "out"))
    assert private.a is private.b
    assert private.c.lookups is private.a.lookups
    assert torch.equal(private(x), model(x))
    with pytest.raises(ArgumentError, match="found 'one' and 'two' for one weight"):
        nt.export(model, tmp_path / "no", tables={"a": "one", "c": "two"})
    with pytest.raises(ArgumentError, match="'c.weight' shares its weight with the table 'a'"):
        nt.export(model, tmp_path / "no", tables=["a"])
    assert not (tmp_path / "no").exists()


def test_a_tied_output_is_a_choice(tmp_path):
    model, x = language(tied=True)
    said = "'output.weight' shares its weight .* copy of 2400 bytes; expected tied='copy' to accept"
    with pytest.raises(ArgumentError, match=said):
        nt.export(model, tmp_path)
    with pytest.raises(ArgumentError, match="tied: found 'yes', expected 'refuse' or 'copy'"):
        nt.export(model, tmp_path, tied="yes")
    nt.export(model, tmp_path, tied="copy")
    private = nt.load(lambda: Language(tied=True), tmp_path, served(tmp_path))
    assert torch.equal(private(*x), model(*x))
    assert "output.weight" in private.state_dict()


def test_ties_by_memory_are_found(tmp_path):
    model, _ = language()
    model.output.weight = nn.Parameter(model.embedding.weight.detach()[:, :])
    with pytest.raises(ArgumentError, match="'output.weight' shares its weight"):
        nt.export(model, tmp_path)


# ---- quantized layers ----------------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False])
def test_the_rest_may_be_quantized(tmp_path, before):
    model, x = language()
    plan = {"rnn": (4, 8), "output": (3, 16)}
    small = qt.quantize(model, plan)
    if before:
        nt.export(small, tmp_path)
    else:
        nt.export(model, tmp_path, quantize=plan)
    private = nt.load(Language, tmp_path, served(tmp_path))
    assert type(private.output) is qt.BitSerialLinear
    assert (private.output.weight_bits, private.rnn.hh_l0.activation_bits) == (3, 8)
    assert torch.equal(private(*x), small(*x))
    again = nt.load(lambda: qt.quantize(Language(), plan), tmp_path, served(tmp_path))
    assert torch.equal(again(*x), small(*x))


def test_cells_and_wildcards(tmp_path):
    class Cells(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 6)
            self.lstm, self.gru = nn.LSTMCell(6, 5), nn.GRUCell(5, 4, bias=False)
            self.stack = nn.GRU(4, 3, 2, bidirectional=True)

        def forward(self, x):
            h = self.gru(self.lstm(self.embedding(x))[0])
            return self.stack(h[None])[0]

    torch.manual_seed(2)
    model, x = Cells(), torch.arange(10)
    plan = {"*": (5, 16)}
    with pytest.raises(ArgumentError, match="'embedding', found a Embedding"):
        qt.quantize(model, plan)
    nt.export(model, tmp_path, quantize=plan)  # the rest has no embedding
    private = nt.load(Cells, tmp_path, served(tmp_path))
    expected = qt.quantize(model, {"lstm": (5, 16), "gru": (5, 16), "stack": (5, 16)})
    assert torch.equal(private(x), expected(x))


def test_a_loaded_model_may_be_quantized(tmp_path):
    model, x = language()
    nt.export(model, tmp_path)
    private = nt.load(Language, tmp_path, served(tmp_path))
    plan = {"output": (4, 8)}
    assert torch.equal(qt.quantize(private, plan)(*x), qt.quantize(model, plan)(*x))


def test_a_plan_that_names_nothing(tmp_path):
    model, _ = language()
    with pytest.raises(ArgumentError, match="plan, 'head': found no such layer"):
        nt.export(model, tmp_path / "out", quantize={"head": (4, 8)})
    assert not (tmp_path / "out").exists()


# ---- models that cannot be cut -------------------------------------------------------------------


class Scaled(nn.Embedding):
    def forward(self, x):
        return 2 * super().forward(x)


def hooked():
    model = nn.Sequential(nn.Embedding(4, 3))
    model[0].register_forward_hook(lambda *_: None)
    return model


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: [1], "model: found list, expected a torch.nn.Module"),
        (lambda: nn.Linear(2, 2), "model: found no nn.Embedding or nn.EmbeddingBag"),
        (lambda: nn.Sequential(Scaled(4, 3)), "module '0': found Scaled, which may compute .*else"),
        (lambda: nn.Sequential(nn.Embedding(4, 3, max_norm=1.0)), "'0': found max_norm 1.0, exp"),
        (hooked, "module '0': found hooks on it"),
        (
            lambda: nn.Embedding(4, 3, device="meta"),
            "found torch.float32 on meta, expected float16",
        ),
        (lambda: nn.Embedding(4, 3).to(torch.complex64), "found torch.complex64"),
        (
            lambda: nn.ModuleDict({"a b": nn.Embedding(4, 3)}),
            "a table's name: found 'a b', expected",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
def test_models_without_an_exact_cut(tmp_path, make, said):
    with pytest.raises(ArgumentError, match=said):
        nt.export(make(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("items", "tables: found 'items', expected names of modules"),
        ([], r"tables: found \[\], expected names"),
        (["films"], "tables: found 'films', expected names of modules such as 'items', 'users'"),
        (["head.0"], "tables: found 'head.0', expected names"),
        ({"items": "a/b"}, "a table's name: found 'a/b', expected 1 to 128 letters"),
        ({"items": ".."}, "a table's name: found '..'"),
        ({"items": 3}, "a table's name: found 3"),
        ({"items": "a", "users": "a"}, "tables: found 'a' for two weights, expected different"),
    ],
    ids=str,
)
def test_tables_that_are_none(tmp_path, tables, said):
    with pytest.raises(ArgumentError, match=said):
        nt.export(recommender()[0], tmp_path / "out", tables=tables)
    assert list(tmp_path.iterdir()) == []


def test_states_that_are_not_tensors(tmp_path):
    class Extra(nn.Sequential):
        def get_extra_state(self):
            return {"a": 1}

    with pytest.raises(ArgumentError, match="'_extra_state': found dict, expected a tensor"):
        nt.export(Extra(nn.Embedding(4, 3)), tmp_path / "out")
    model = nn.Sequential(nn.Embedding(4, 3))
    model.register_buffer("a", torch.eye(2).to_sparse())
    with pytest.raises(ArgumentError, match="'a': found torch.sparse_coo, expected a tensor"):
        nt.export(model, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_have_something(tmp_path):
    (tmp_path / "file").write_text("kept")
    for target in (tmp_path, tmp_path / "file"):
        with pytest.raises(FileError, match="exists, expected an empty or new folder"):
            nt.export(recommender()[0], target)
    with pytest.raises(FileError, match="cannot write the model"):
        nt.export(recommender()[0], tmp_path / "file" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
