"""Files keep PyTorch modules that are not quantized."""

import numpy as np
import pytest

from nescio import quant
from nescio.errors import ArgumentError

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
qt = pytest.importorskip("nescio.quant.torch")
nn = torch.nn


@pytest.mark.parametrize("kind", [nn.ReLU, nn.LeakyReLU, nn.Identity, nn.Dropout])
def test_the_bits_are_pytorch_s(kind, tmp_path):
    """Bits are equal where docs/quant.md promises it, also for -0, infinities and subnormals."""
    model = nn.Sequential(kind()).eval()
    quant.save(model, tmp_path / "model")
    x = np.array([-0.0, 0.0, -1e-45, 1e-45, -1, 1, 3e38, -np.inf, np.inf] * 5, np.float32)
    found = quant.load(tmp_path / "model")(x)
    assert found.tobytes() == model(torch.from_numpy(x)).numpy().tobytes()


def test_functions_are_pytorch_s(tmp_path):
    torch.manual_seed(8)
    model = nn.Sequential(
        nn.LeakyReLU(0.3),
        nn.Tanh(),
        nn.LayerNorm(6),
        nn.Sigmoid(),
        nn.LogSoftmax(-1),
        nn.Identity(),
    )
    quant.save(model, tmp_path / "model")
    x = torch.randn(3, 6) * 5
    found = quant.load(tmp_path / "model")(x.numpy())
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_weight_norm_is_a_hook(tmp_path):
    model = nn.Sequential(nn.utils.weight_norm(nn.Linear(4, 2)))
    with pytest.raises(ArgumentError, match="'0': found hooks on it.*remove_weight_norm"):
        quant.save(model, tmp_path / "model")


class Others(nn.Module):
    """Module with buffers other than float32 arrays with axes."""

    def __init__(self, offset=0):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)  # which counts its batches in a number without axes
        for name in ("float16", "bfloat16", "float64", "float8_e5m2", "complex64", "bool", "int8"):
            values = (torch.arange(4) + offset).to(getattr(torch, name))
            self.register_buffer(f"as_{name}", values)

    def forward(self, x):
        return self.norm(self.fc(x))


def test_buffers_of_every_kind_come_back(tmp_path):
    torch.manual_seed(11)
    model = Others(1)
    model(torch.randn(5, 4))
    small = qt.quantize(model.eval(), {"fc": (4, 8)})
    quant.save(small, tmp_path / "model")
    loaded = qt.load(tmp_path / "model", Others().eval())
    assert loaded.norm.num_batches_tracked.shape == ()
    assert int(loaded.norm.num_batches_tracked) == 1
    for name, tensor in small.state_dict().items():
        found = loaded.state_dict()[name]
        assert found.dtype == tensor.dtype
        assert (
            found.view(torch.uint8).tolist() == tensor.view(torch.uint8).tolist()
            if (tensor.dim())
            else found == tensor
        )
    x = torch.randn(3, 4)
    assert torch.equal(loaded(x), small(x))


def test_buffers_that_numpy_has_not(tmp_path):
    model = nn.Module()
    model.register_buffer("a", torch.eye(2).to_sparse())
    with pytest.raises(ArgumentError, match="'a': found torch.float32 of torch.sparse_coo"):
        quant.save(model, tmp_path / "model")
    model.a = torch.zeros(2, device="meta")
    with pytest.raises(ArgumentError, match="'a': found .* on meta"):
        quant.save(model, tmp_path / "model")
