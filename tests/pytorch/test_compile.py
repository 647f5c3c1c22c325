"""`nescio.mpc.compile`: PyTorch models as plans, and tensors between two parties."""

import numpy as np
import pytest

import nescio.mpc
from nescio.errors import ArgumentError
from nescio.mpc import Plan, PrivateModel, PublicPlan, Server, insecure_dealer, prepare
from ot.parties import together

torch = pytest.importorskip("torch")
nn = torch.nn


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3, padding=1),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    ).eval()


@pytest.fixture(scope="module")
def inputs():
    return torch.randn(100, 2, 12, 12, generator=torch.Generator().manual_seed(4))


@pytest.fixture(scope="module")
def plan(model, inputs):
    with torch.no_grad():
        labels = model(inputs).argmax(1)
    loader = torch.utils.data.DataLoader(list(zip(inputs, labels, strict=True)), batch_size=32)
    return nescio.mpc.compile(model, inputs[:1], calibration=loader, table_bits=10)


def test_a_plan_agrees_with_its_model(plan, model, inputs):
    report = plan.report
    assert report.inputs == 25
    assert report.float_accuracy == 1.0
    assert report.accuracy >= 0.75  # the dithers are random
    assert report.error < 0.1
    with torch.no_grad():
        expected = model(inputs).numpy()
    found = plan.simulate(inputs.numpy()).outputs
    assert np.abs(found - expected).mean() < 0.1 * expected.std()


def test_both_parties_give_tensors(plan, model, inputs, tmp_path):
    """With what they prepared themselves; outputs are near the model's."""
    paths = tmp_path / "client", tmp_path / "server"
    together(
        lambda channel: prepare(channel, plan.public.network, paths[0], 2, threads=1),
        lambda channel: prepare(channel, plan.network, paths[1], 2, threads=1),
    )

    def client(channel):
        with PrivateModel(channel, plan.public, paths[0], threads=1) as private:
            return private(inputs[:2])

    def server(channel):
        with Server(channel, plan.network, paths[1], threads=1) as party:
            party.serve()

    found, _ = together(client, server)
    with torch.no_grad():
        expected = model(inputs[:2])
    assert found.dtype == torch.float32
    assert found.shape == expected.shape
    assert (found - expected).abs().mean() < 0.1 * model(inputs).std()


def test_the_parties_compute_what_the_simulator_computes(plan, inputs, tmp_path):
    insecure_dealer(plan.network, tmp_path / "client", tmp_path / "server", 1, seed=5)

    def client(channel):
        with PrivateModel(channel, plan.public, tmp_path / "client", threads=1) as private:
            return private(inputs[:1].double().numpy())

    def server(channel):
        with Server(channel, plan.network, tmp_path / "server", threads=1) as party:
            party.serve()

    found, _ = together(client, server)
    one = inputs[:1].numpy()
    draws = np.stack([plan.simulate(one).outputs for _ in range(64)])
    assert (np.abs(found - draws.mean(0)) <= 8 * draws.std(0)).all()


@pytest.mark.parametrize("shape", [(4, 12), (5,)])
def test_inputs_of_one_or_two_dimensions(shape):
    torch.manual_seed(8)
    layers = [nn.Conv1d(4, 6, 3)] if len(shape) == 2 else [nn.Linear(5, 6)]
    own = nn.Sequential(*layers, nn.GELU(), nn.Flatten(), nn.LazyLinear(3)).eval()
    inputs = torch.randn(40, *shape)
    with torch.no_grad():
        expected = own(inputs).numpy()
    found = nescio.mpc.compile(own, inputs[:1], calibration=inputs, table_bits=11)
    assert found.report.inputs == 10
    outputs = found.simulate(inputs.numpy()).outputs
    assert np.abs(outputs - expected).mean() < 0.1 * expected.std()


@pytest.mark.parametrize(
    ("own", "shape"),
    [
        (nn.Sequential(nn.Conv1d(3, 5, 3, padding=1), nn.ReLU(), nn.Conv1d(5, 4, 3)), (3, 16)),
        (nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 2)), (7, 5)),
        (nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1), nn.Flatten(0)), (8,)),
    ],
    ids=["signals", "tokens", "numbers"],
)
def test_shapes_are_the_models(own, shape, tmp_path):
    """In the simulator, in a plan from a file, and between two parties."""
    inputs = torch.randn(40, *shape, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        expected = own(inputs)
    nescio.mpc.compile(own, inputs[:1], calibration=inputs, table_bits=10).save(tmp_path / "plan")
    plan = Plan.load(tmp_path / "plan")
    public = PublicPlan.from_bytes(plan.public.to_bytes())
    assert public.inputs == plan.public.inputs == shape
    assert ("n", *public.outputs) == ("n", *expected.shape[1:])
    assert plan.simulate(inputs.numpy()).outputs.shape == expected.shape
    with pytest.raises(ArgumentError, match="expected"):
        public.encode(inputs.numpy()[:, None])
    insecure_dealer(plan.network, tmp_path / "client", tmp_path / "server", 2, seed=5)

    def client(channel):
        with PrivateModel(channel, public, tmp_path / "client", threads=1) as private:
            return private(inputs[:2])

    def server(channel):
        with Server(channel, plan.network, tmp_path / "server", threads=1) as party:
            party.serve()

    found, _ = together(client, server)
    assert found.shape == expected[:2].shape
    assert (found - expected[:2]).abs().mean() < 0.2 * expected.std()


def test_the_model_is_left_as_it_was(model, inputs):
    model.train()
    try:
        before = {name: value.clone() for name, value in model.state_dict().items()}
        nescio.mpc.compile(model, inputs[:1], calibration=inputs[:20])
        assert model.training
        after = model.state_dict()
        assert all(torch.equal(value, after[name]) for name, value in before.items())
    finally:
        model.eval()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"calibration": []}, "found 0 inputs"),
        ({"calibration": torch.zeros(9, 2, 12, 11)}, "as in the example"),
        ({"calibration": torch.full((9, 2, 12, 12), float("nan"))}, "not finite"),
        ({"calibration": torch.zeros(9, 2, 12, 12), "table_bits": 13}, "bits"),
        ({"calibration": torch.zeros(9, 2, 12, 12), "table_bits": [8, 8]}, "one for each layer"),
        ({"calibration": torch.ones(9, 2, 12, 12), "offline_bytes": 5}, "expected at least"),
        ({"calibration": torch.zeros(9, 2, 12, 12)}, "found zeros alone"),
        ({"calibration": torch.zeros(9, 2, 12, 12), "margin": -1}, "margin"),
        ({"calibration": torch.ones(9, 2, 12, 12), "margin": "a"}, "margin: found 'a'"),
        ({"calibration": torch.ones(9, 2, 12, 12), "margin": 1e300}, "from 0 to 1000"),
        ({"calibration": torch.ones(9, 2, 12, 12), "table_bits": "8"}, "expected an integer"),
        ({"calibration": torch.ones(9, 2, 12, 12), "table_bits": True}, "expected an integer"),
        ({"calibration": None}, "found NoneType, expected a tensor, or batches"),
        ({"calibration": [{"x": torch.ones(2)}]}, "found inputs of dict"),
        ({"calibration": [["a"]]}, "found inputs of str"),
        ({"calibration": torch.ones(9, 2, 12, 12, dtype=torch.complex64)}, "of real numbers"),
    ],
)
def test_bad_options_are_refused(model, inputs, change, said):
    with pytest.raises(ArgumentError, match=said):
        nescio.mpc.compile(model, inputs[:1], **change)


def test_weights_that_are_not_finite_are_refused(inputs):
    model = nn.Sequential(nn.Flatten(), nn.Linear(288, 4), nn.ReLU(), nn.Linear(4, 2))
    with torch.no_grad():
        model[1].weight[2, 3] = float("nan")
    with pytest.raises(ArgumentError, match="finite"):
        nescio.mpc.compile(model, inputs[:1], calibration=inputs)
