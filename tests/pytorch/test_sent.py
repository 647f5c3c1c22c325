"""Messages of private modules: their number and sizes depend on the shape of an input alone."""

import pytest

from pytorch.lookups import Recorded

torch = pytest.importorskip("torch")
nt = pytest.importorskip("nescio.torch")

ROWS = 5000  # with hash tables above the rows, which are looked up too


@pytest.fixture(scope="module")
def lookups():
    return Recorded(torch.randn(ROWS, 8, generator=torch.Generator().manual_seed(1)).numpy())


INPUTS = {
    "different": torch.arange(12).reshape(3, 4) * 400,
    "neighbors": torch.arange(12).reshape(3, 4),
    "equal": torch.full((3, 4), 4999),
    "padding": torch.full((3, 4), 7),
    "some padding": torch.tensor([[7, 1, 7, 7], [7, 7, 7, 7], [1, 2, 3, 7]]),
}


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_sizes_do_not_depend_on_the_indices(lookups, kind):
    module = getattr(nt, f"Private{kind}")(lookups, padding_idx=7)
    sizes = []
    for x in (*INPUTS.values(), *INPUTS.values()):
        module(x)
        sizes.append(lookups.sizes())
    assert sizes == [sizes[0]] * len(sizes)
    (pair,) = sizes[0]
    params = lookups.params
    rows_alone = [size - 12 * params.verified_key_bytes for size in pair]
    assert rows_alone[0] == rows_alone[1] < params.verified_key_bytes  # a header
    assert lookups.sent == []


def test_every_index_has_keys_of_its_own(lookups):
    """Two lookups of one row have keys that are not related."""
    module = nt.PrivateEmbedding(lookups)
    module(torch.tensor([3, 3]))
    module(torch.tensor([3, 3]))
    messages = {key for pair in lookups.sent for key in pair}
    assert len(messages) == 4
    lookups.sent.clear()


def test_offsets_and_weights_are_local(lookups):
    module = nt.PrivateEmbeddingBag(lookups, mode="sum", padding_idx=7)
    sizes = []
    for offsets in ([0, 4, 8], [0], [0, 0, 0, 12], list(range(12))):
        module(INPUTS["padding"].reshape(-1), torch.tensor(offsets))
        sizes.append(lookups.sizes())
    module(INPUTS["equal"].reshape(-1), torch.tensor([0]), torch.zeros(12))
    sizes.append(lookups.sizes())
    assert sizes == [sizes[0]] * len(sizes)


def test_dtypes_of_indices_and_of_models_are_local(lookups):
    module = nt.PrivateEmbedding(lookups)
    sizes = []
    for dtype in (torch.int32, torch.int64):
        module(INPUTS["different"].to(dtype))
        sizes.append(lookups.sizes())
    module.half()(INPUTS["different"])
    sizes.append(lookups.sizes())
    assert sizes == [sizes[0]] * len(sizes)
