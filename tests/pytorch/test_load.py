"""`load`: checkpoints, tables of servers, and models that are not the exported one."""

import pytest

from nescio.errors import ArgumentError, FileError, MismatchError
from pytorch.lookups import local, served
from pytorch.models import Language, Recommender, language, nn, recommender, torch

nt = pytest.importorskip("nescio.torch")

# ---- states --------------------------------------------------------------------------------------


def test_the_checkpoint_of_the_plain_model_is_accepted(tmp_path):
    model, x = recommender()
    nt.export(model, tmp_path)
    private = nt.load(Recommender, tmp_path, served(tmp_path))
    result = private.load_state_dict(model.state_dict())
    assert (result.missing_keys, result.unexpected_keys) == ([], [])
    assert torch.equal(private(*x), model(*x))
    other = Recommender().state_dict()
    with pytest.warns(UserWarning, match="weight: found a weight with the digest"):
        with pytest.raises(RuntimeError, match="Unexpected key.*items.weight"):
            private.load_state_dict(other)


# ---- tables of servers ---------------------------------------------------------------------------


@pytest.fixture
def exported(tmp_path):
    model, x = recommender()
    nt.export(model, tmp_path)
    return tmp_path, model, x


def test_tables_of_another_export(exported):
    folder, model, x = exported
    lookups = served(folder)
    weight = model.users.weight.detach().numpy().copy()
    weight[3] += 1
    lookups["users"] = local(weight)
    with pytest.raises(
        MismatchError, match="table 'users': found the digest .*, expected .* was e"
    ):
        nt.load(Recommender, folder, lookups)
    private = nt.load(Recommender, folder, lookups, check_digest=False)
    with torch.no_grad():
        model.users.weight[3] += 1
    assert torch.equal(private(*x), model(*x))
    lookups["users"] = local(weight[:, :5])
    with pytest.raises(MismatchError, match=r"'users': found float32 of shape \(30, 5\), expected"):
        nt.load(Recommender, folder, lookups, check_digest=False)


def test_another_version_of_the_same_rows(exported):
    """A table's version is a text of its operators; the digest says that the rows are the same."""
    folder, model, x = exported
    private = nt.load(Recommender, folder, served(folder, version="2", generator="aes128"))
    assert torch.equal(private(*x), model(*x))


def test_lookups_by_name(exported):
    folder, _, _ = exported
    lookups = served(folder)
    with pytest.raises(ArgumentError, match=r"lookups: found \['items'\], expected \['items', 't"):
        nt.load(Recommender, folder, {"items": lookups["items"]})
    with pytest.raises(ArgumentError, match="lookups: found .*'others'.*, expected "):
        nt.load(Recommender, folder, lookups | {"others": lookups["items"]})
    with pytest.raises(ArgumentError, match="lookups: found None, expected lookups of a table|map"):
        nt.load(Recommender, folder, None)
    with pytest.raises(ArgumentError, match="lookups: found NoneType, expected lookups of a table"):
        nt.load(Recommender, folder, lookups | {"items": None})
    with pytest.raises(ArgumentError, match="missing: found .*expected"):
        nt.load(Recommender, folder, lookups, missing={"items": "zeros"})


# ---- other models --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Language, "the model has no module 'items'"),
        (lambda: Recommender(items=201), "module 'items' is .*201, 12, 0, 'mean'.*, expected"),
        (lambda: Recommender(columns=13), "module 'items' is .*200, 13"),
        (nn.Sequential, "the model has no module"),
    ],
)
def test_files_of_another_model(exported, make, said):
    folder, _, _ = exported
    with pytest.raises(FileError, match=f"belongs to another model: {said}"):
        nt.load(make, folder, served(folder))


def test_models_whose_rest_differs(exported):
    folder, _, _ = exported

    def changed(change):
        model = Recommender()
        change(model)
        return model

    cases = [
        (lambda m: m.register_buffer("more", torch.zeros(2)), "'more' is missing in the file"),
        (lambda m: delattr(m, "norm"), "'norm.bias' is missing in the model"),
        (lambda m: m.head.__setitem__(2, nn.Linear(16, 2)), r"'head.2.weight' is float32 of sh.*1"),
        (lambda m: setattr(m, "items", nn.EmbeddingBag(200, 12, mode="sum")), "'items' is .*'sum'"),
        (lambda m: setattr(m, "users", nn.Linear(2, 3)), "'users' is .*'Linear'"),
    ]
    for change, said in cases:
        with pytest.raises(FileError, match=f"another model: .*{said}"):
            nt.load(lambda change=change: changed(change), folder, served(folder))
    for model in (None, 3, list):
        with pytest.raises(
            ArgumentError, match="model: found .*, expected a torch.nn.Module, or a"
        ):
            nt.load(model, folder, served(folder))


def test_quantized_layers_that_the_model_lacks(tmp_path):
    model, _ = language()
    nt.export(model, tmp_path, quantize={"output": (4, 8)})

    class Other(Language):
        def __init__(self):
            super().__init__()
            self.output = nn.Bilinear(2, 3, 4)

    with pytest.raises(FileError, match="another model: 'output' is a Bilinear, expected a module"):
        nt.load(Other, tmp_path, served(tmp_path))
