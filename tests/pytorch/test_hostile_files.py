"""The device's files, changed: each change is a FileError, before anything is connected."""

import json

import pytest

from nescio.errors import FileError
from pytorch.models import Language, language, torch

nt = pytest.importorskip("nescio.torch")
D = "0" * 64


@pytest.fixture
def folder(tmp_path):
    nt.export(language()[0], tmp_path, quantize={"output": (4, 8)})
    return tmp_path / "device"


def load(folder):
    return nt.load(Language, folder, {})


def changed(folder, *path, value):
    """Writes the description with one value replaced, or removed if it is None."""
    described = json.loads((folder / "model.json").read_text())
    part = described
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    (folder / "model.json").write_text(json.dumps(described))


TABLE, MODULE = ("tables", "embedding"), ("modules", "embedding")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["format"], 2, "found format 2, expected 1"),
        (["format"], True, "found format True, expected 1"),
        (["more"], 1, "it: found .*'more'.*, expected the fields format, modules, quantized, tab"),
        (["weights"], "x", "weights: found 'x', expected"),
        (["tables"], [], r"tables: found \[\], expected a JSON object"),
        (["tables"], {}, "'embedding': found table 'embedding', which is absent"),
        ([*TABLE], 3, "tables, 'embedding': found 3, expected the fields columns"),
        ([*TABLE, "rows"], 0, "rows: found 0, expected 1 to"),
        ([*TABLE, "rows"], 1.0, "rows: found 1.0, expected an integer"),
        ([*TABLE, "rows"], True, "rows: found True, expected an integer"),
        ([*TABLE, "columns"], 1 << 30, "columns: found 1073741824, expected 1 to 16777216"),
        ([*TABLE, "dtype"], "O", "found dtype 'O', expected float16"),
        ([*TABLE, "dtype"], [], r"found dtype \[\]"),
        ([*TABLE, "digest"], D[1:], "digest: found '0"),
        ([*TABLE, "layout"], "layout.json", "layout: found 'layout.json'"),
        ([*TABLE, "version"], "", "version: found ''"),
        ([*TABLE, "weight"], None, "weight: found None"),
        (["tables", "../../a"], "table", "found 'table', expected the fields"),
        ([*MODULE], None, "modules, 'embedding': found None"),
        ([*MODULE, "kind"], "Linear", r"found \['Linear', None, False\], expected a kind"),
        ([*MODULE, "kind"], "EmbeddingBag", r"found \['EmbeddingBag', None, False\]"),
        ([*MODULE, "mode"], "sum", r"found \['Embedding', 'sum', False\]"),
        ([*MODULE, "include_last_offset"], 1, r"found \['Embedding', None, 1\]"),
        ([*MODULE, "kind"], {}, r"found \[{}, None"),
        ([*MODULE, "table"], "other", "'embedding': found table 'other', which is absent"),
        ([*MODULE, "table"], "../../a", "a table's name: found '../../a'"),
        ([*MODULE, "padding_idx"], 50, "padding_idx: found 50, expected 0 to 49"),
        ([*MODULE, "padding_idx"], -1, "padding_idx: found -1, expected 0 to"),
        (["quantized", "output"], [4], r"found \[4\], expected two numbers of bits"),
        (["quantized", "output"], [4, "8"], "found '8', expected an integer"),
        (["quantized", "output"], [0, 8], "found 0, expected 1 to 32"),
        (["quantized", "output"], [9, 8], "another model: weight bits: found 9, expected 1 to 8"),
        (["quantized", "output"], [4, 9], "another model: .*found 9"),
        (["quantized", "output"], [5, 8], "'output.planes' is int64 of shape .*in the file, int64"),
        (["quantized", "rnn"], [4, 8], "'rnn.bias_hh_l0' is missing in the model"),
        (["quantized", "other"], [4, 8], "the model has no module 'other'"),
    ],
    ids=str,
)
def test_a_changed_description(folder, path, value, said):
    from pytorch.lookups import Recorded  # noqa: PLC0415

    changed(folder, *path, value=value)
    lookups = {"embedding": Recorded(language()[0].embedding.weight.detach().numpy())}
    with pytest.raises(FileError, match=said):
        nt.load(Language, folder, lookups)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff", b"[]", b"null", b"[" * 100_000, b'{"format": 1}', b"NaN"],
    ids=lambda text: repr(text[:20]),
)
def test_descriptions_that_are_none(folder, text):
    (folder / "model.json").write_bytes(text)
    with pytest.raises(FileError, match="model.json does not describe a model of nescio.torch: "):
        load(folder)


def test_a_description_that_is_too_long(folder):
    text = (folder / "model.json").read_text()
    (folder / "model.json").write_text(text + " " * (4 << 20))
    with pytest.raises(FileError, match="bytes, expected at most 4194304"):
        load(folder)


def test_weights_of_another_export(folder):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match="found a file with the digest .*copy both files of one"):
        load(folder)


@pytest.mark.parametrize("data", [b"", b"\xff" * 64, b"\x80\x04N."], ids=repr)
def test_weights_that_are_none(folder, data):
    import hashlib  # noqa: PLC0415

    (folder / "model.safetensors").write_bytes(data)
    changed(folder, "weights", value=hashlib.sha256(data).hexdigest())
    with pytest.raises(FileError, match="is not a valid safetensors file"):
        load(folder)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_files_that_do_not_exist(folder, name):
    (folder / name).unlink()
    with pytest.raises(
        FileError, match=f"{name}: cannot read the file: .*expected the folder that"
    ):
        load(folder)
    with pytest.raises(FileError, match="cannot read the file"):
        load(folder / "none")


def test_the_files_are_as_they_were(folder):
    """The fixture's own files load, so that each change above is the reason of its error."""
    with pytest.raises(ValueError, match=r"lookups: found \[\], expected \['embedding'\]"):
        load(folder)
    assert torch.is_tensor(language()[1][0])
