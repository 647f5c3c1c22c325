"""`compile(outputs="class")`: the client learns the class of a PyTorch model, and no output."""

import json
import threading

import numpy as np
import pytest

import nescio.mpc
from commands.conftest import nescio_here
from mpc.sessions import Dealt
from nescio.errors import ArgumentError, FileError, PeerRefusedError
from nescio.mpc import Plan, PlanServer, PrivateModel, PublicPlan, RemotePlan, Server, prepare
from nescio.net import Channel
from ot.parties import together

torch = pytest.importorskip("torch")
nn = torch.nn


class Ended(nn.Module):
    """A model with another end."""

    def __init__(self, model, end):
        super().__init__()
        self.model, self.end = model, end

    def forward(self, x):
        return self.end(self.model(x))


def classifier(count, seed=2):
    torch.manual_seed(seed)
    layers = nn.Flatten(), nn.Linear(25, 16), nn.ReLU(), nn.Linear(16, count)
    return nn.Sequential(*layers).eval()


INPUTS = torch.randn(240, 1, 5, 5, generator=torch.Generator().manual_seed(4))
MODELS = {count: classifier(count) for count in (2, 3, 10, 100, 200)}


def compiled(model, **options):
    options = {"outputs": "class", "table_bits": 11, "margin": 1.0} | options
    return nescio.mpc.compile(model, INPUTS[:1], calibration=INPUTS, **options)


@pytest.fixture(scope="module")
def plans():
    return {count: compiled(model) for count, model in MODELS.items()}


@pytest.fixture(scope="module")
def plan(plans):
    return plans[10]


def clear(model):
    """Returns the inputs that are away from ties, and their classes."""
    with torch.no_grad():
        logits = model(INPUTS)
    first, second = logits.topk(2, 1).values.T
    chosen = first - second > 0.05 * (logits.max() - logits.min())
    return INPUTS[chosen], logits.argmax(1)[chosen]


@pytest.mark.parametrize("count", MODELS)
def test_a_plan_agrees_with_argmax_away_from_ties(plans, count):
    inputs, classes = clear(MODELS[count])
    assert len(inputs) > 10
    found = plans[count].simulate(inputs.numpy()).outputs
    assert found.dtype == np.int64
    assert np.array_equal(found, classes.numpy())
    assert plans[count].public.classes == count


@pytest.mark.parametrize("count", MODELS)
def test_the_parties_compute_what_the_simulator_computes(plans, count, tmp_path):
    """For the same roundings, also near ties."""
    own = plans[count]
    encoded = own.public.encode(INPUTS[:3].numpy())
    dealt = Dealt(own.network, tmp_path, 3)
    found, _ = together(dealt.infer(*encoded), dealt.serve(3))
    expected = [dealt.expected(number, x) for number, x in enumerate(encoded)]
    assert np.array_equal(found, expected)
    classes = own.public.decode(np.array(found))
    assert classes.shape == (3,)
    assert classes.min() >= 0
    assert classes.max() < count


@pytest.mark.parametrize("count", [3, 10, 200])
def test_from_preparation_to_classes(plans, count, tmp_path):
    """With products of encrypted numbers, which may be 1 off; tensors of int64 come back."""
    own, paths = plans[count], (tmp_path / "client", tmp_path / "server")
    inputs, classes = clear(MODELS[count])
    together(
        lambda channel: prepare(channel, own.public.network, paths[0], 2, threads=1),
        lambda channel: prepare(channel, own.network, paths[1], 2, threads=1),
    )

    def client(channel):
        with PrivateModel(channel, own.public, paths[0], threads=1) as private:
            return private(inputs[:2])

    def server(channel):
        with Server(channel, own.network, paths[1], threads=1) as party:
            party.serve()

    found, _ = together(client, server)
    assert found.dtype == torch.int64
    assert torch.equal(found, classes[:2])


def test_ties_have_the_first_class():
    """Weights of zero: all outputs are equal."""
    model = classifier(6)
    with torch.no_grad():
        for parameter in model[3].parameters():
            parameter.zero_()
    found = compiled(model).simulate(INPUTS[:50].numpy()).outputs
    assert found.tolist() == [0] * 50


def test_near_ties_have_one_of_their_classes():
    """Three equal rows, which are rounded apart; there always is a class, and it is one of them."""
    model = classifier(6)
    with torch.no_grad():
        model[3].weight[[1, 2, 4]] = model[3].weight[[1]]
        model[3].bias[[1, 2, 4]] = 2.0
    assert set(compiled(model).simulate(INPUTS.numpy()).outputs.tolist()) == {1, 2, 4}


@pytest.mark.parametrize(
    "end",
    [
        lambda y: y.argmax(1),
        lambda y: torch.argmax(y, dim=-1),
        lambda y: y.max(1).indices,
        lambda y: torch.max(y, 1)[1],
        lambda y: torch.softmax(y, 1).argmax(1),
        lambda y: nn.functional.log_softmax(y, dim=1).max(dim=1)[1],
    ],
    ids=["argmax", "negative", "indices", "second", "softmax", "log_softmax"],
)
def test_a_model_that_ends_with_its_argmax(plan, end):
    found = compiled(Ended(MODELS[10], end), outputs="logits")
    assert found.public.network.digest == plan.public.network.digest
    assert found.public.classes == 10


def test_a_last_softmax_does_not_change_the_class(plan):
    found = compiled(Ended(MODELS[10], lambda y: torch.softmax(y, -1)))
    assert found.public.network.digest == plan.public.network.digest


@pytest.mark.parametrize(
    ("end", "options", "said"),
    [
        (lambda y: y.argmax(), {}, "let torch.argmax.*be last"),
        (lambda y: y.argmax(1, keepdim=True), {}, "let torch.argmax.*be last"),
        (lambda y: y.argmax(1) + 1, {}, "let torch.argmax.*be last"),
        (lambda y: y.max(1), {}, "found 2 outputs"),
        (lambda y: y.reshape(-1, 5, 2).argmax(1), {}, "let torch.argmax.*be last"),
        (lambda y: y.reshape(-1, 5, 2), {}, r"found outputs of shape \('n', 5, 2\), expected"),
        (lambda y: y[:, :1], {}, "for 2 to 2,047 classes"),
        (lambda y: y.repeat(1, 1), {"outputs": "labels"}, "expected 'logits' or 'class'"),
    ],
)
def test_what_has_no_class_is_refused(end, options, said):
    with pytest.raises(ArgumentError, match=said):
        compiled(Ended(MODELS[10], end), **options)


def test_plans_survive_as_files(plan, tmp_path):
    plan.save(tmp_path / "model.plan")
    found = Plan.load(tmp_path / "model.plan")
    assert found.report == plan.report
    assert found.public.to_bytes() == plan.public.to_bytes()
    inputs, classes = clear(MODELS[10])
    assert np.array_equal(found.simulate(inputs.numpy()).outputs, classes.numpy())


# ---- the service ---------------------------------------------------------------------------------


@pytest.fixture
def serving(plan, tmp_path):
    """Serves the plan; returns its port."""
    with Channel.listener("127.0.0.1", 0, timeout=20) as listener:
        with PlanServer(plan, listener, tmp_path / "stores", threads=1) as server:
            thread = threading.Thread(target=server.run)
            thread.start()
            yield listener.port
            server.stop()
            thread.join(20)
            assert not thread.is_alive()


def test_a_remote_plan_gives_classes(serving, plan, tmp_path):
    remote = RemotePlan(plan.public, lambda: Channel.connect("127.0.0.1", serving), threads=1)
    remote.prepare(tmp_path / "client", 3)
    inputs, classes = clear(MODELS[10])
    with remote.open(tmp_path / "client") as model:
        assert torch.equal(model(inputs[:2]), classes[:2])
        found = model(inputs[2:3].numpy())
    assert (found.dtype, found.tolist()) == (np.int64, classes[2:3].tolist())


def test_clients_with_the_plan_of_other_outputs_are_refused(serving, plan, tmp_path):
    """A plan of logits, and this plan with another kind of outputs."""
    logits = compiled(MODELS[10], outputs="logits").public
    own = plan.public
    changed = PublicPlan(own.network, own.input_scale, own.output_scale, None)
    for public in (logits, changed):
        remote = RemotePlan(public, lambda: Channel.connect("127.0.0.1", serving), threads=1)
        with pytest.raises(PeerRefusedError, match="plan"):
            remote.prepare(tmp_path / "client", 1)
    remote = RemotePlan(own, lambda: Channel.connect("127.0.0.1", serving), threads=1)
    remote.prepare(tmp_path / "client", 1)
    other = RemotePlan(logits, lambda: Channel.connect("127.0.0.1", serving), threads=1)
    with pytest.raises(FileError, match="for network"):
        other.open(tmp_path / "client")


def test_ask_prints_the_class_only(serving, plan, tmp_path):
    inputs, classes = clear(MODELS[10])
    np.save(tmp_path / "two.npy", inputs[:2].numpy())
    (tmp_path / "public").write_bytes(plan.public.to_bytes())
    (tmp_path / "labels.txt").write_text("".join(f"name{k}\n" for k in range(10)))
    options = ["--public", tmp_path / "public", "--store", tmp_path / "store", "--threads", 1]
    address = f"127.0.0.1:{serving}"
    found = nescio_here("infer", "prepare", address, "--count", 4, *options)
    assert found.returncode == 0, found.stderr
    labels = ["--labels", tmp_path / "labels.txt"]
    found = nescio_here("infer", "ask", address, tmp_path / "two.npy", *labels, *options)
    expected = [f"{tmp_path / 'two.npy'}[{k}]: name{classes[k]}" for k in (0, 1)]
    assert found.stdout.splitlines()[:2] == expected, found.stderr
    found = nescio_here("infer", "ask", address, tmp_path / "two.npy", "--json", *options)
    answers = json.loads(found.stdout)["answers"]
    assert answers == [
        {"input": f"{tmp_path / 'two.npy'}[{k}]", "class": int(classes[k]), "label": None}
        for k in (0, 1)
    ]
