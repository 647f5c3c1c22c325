"""Fuzzes what a party of private inference reads from others and from files (atheris, libFuzzer).

    python tests/fuzz/fuzz_mpc.py -max_total_time=60

Whatever comes in is accepted, and then it is what was written, or can be written again, or it is
refused with a NescioError. Options are libFuzzer's.
"""

import json
import sys
import tempfile
from pathlib import Path
from types import FunctionType
from typing import Any

import atheris
import numpy as np
from safetensors.numpy import save

import nescio
from nescio.mpc import _agreement as agreement
from nescio.mpc import _online as online
from nescio.mpc import _public as public
from nescio.mpc import _store as store
from nescio.mpc._plans import plan as plans
from nescio.mpc._plans import report as reports
from nescio.mpc._plans.compiler import plan_of
from nescio.mpc._plans.floats import FloatLayer, FloatTerm
from nescio.mpc._service import _request as request
from nescio.mpc._store_writer import StoreWriter

# By function: atheris's import hook does not see packages that are installed in place.
MODULES = (public, public.PublicNetwork, public.PublicLayer, public.PublicTerm, agreement, store)
PLANS = (plans, plans.Plan, plans.PublicPlan, reports, reports.Report, request, request.Request)
for module in (*MODULES, store.Store, store.Contents, *PLANS):
    for thing in list(vars(module).values()):
        function = getattr(thing, "__func__", thing)  # of a class method
        if isinstance(function, FunctionType) and function.__module__.startswith("nescio."):
            atheris.instrument_func(function)

FOLDER = tempfile.TemporaryDirectory(prefix="nescio-fuzz-")


def small_plan() -> nescio.mpc.Plan:
    """Compiles a network of two layers, with an activation between them."""
    mpc = nescio.mpc
    first = mpc.Convolution(np.ones((2, 1, 2, 2), np.int8), (1, 3, 3))
    last = mpc.Dense(np.ones((3, 8), np.int8), (2, 2, 2))
    layers = [
        FloatLayer((FloatTerm(0, first, np.full((2, 1, 2, 2), 0.25)),), np.zeros(2)),
        FloatLayer((FloatTerm(1, last, np.full((3, 8), 0.5)),), np.zeros(3)),
    ]
    inputs = np.random.default_rng(0).normal(size=(8, 1, 3, 3))
    return plan_of(layers, inputs, held=inputs, table_bits=4)


PLAN = small_plan()
NETWORK = PLAN.public.network
PLAN_FILE = Path(FOLDER.name, "plan")
PLAN.save(PLAN_FILE)
PLAN_BYTES = PLAN_FILE.read_bytes()
nescio.mpc.Plan.load(PLAN_FILE)  # accepted as it is
HEADER_END = 8 + int.from_bytes(PLAN_BYTES[:8], "little")
HEADER = json.loads(PLAN_BYTES[8:HEADER_END])

HELLO = {"protocol": agreement.PROTOCOL, "role": "server", "plan": NETWORK.digest}
PREPARING, SESSION = {**HELLO, "count": 1, "nonce": 64 * "0"}, 64 * "a"
INFERRING = {**HELLO, "session": SESSION, "next": 0, "batch": 1}
REQUESTS = [
    {"protocol": 1, "plan": request.plan_digest(PLAN.public), "what": what, name: own}
    for what, name, own in [("prepare", "count", 3), ("infer", "session", 64 * "a")]
]
PARTS = [bytes([number]) * 40 for number in range(3)]
INFERENCES = Path(FOLDER.name, "inferences")
with StoreWriter(
    INFERENCES, store.Contents("client", NETWORK.digest, "ab" * 32, len(PARTS), len(PARTS[0]))
) as writer:
    for part in PARTS:
        writer.add(part)
STORE = INFERENCES.read_bytes()


def damaged(provider: atheris.FuzzedDataProvider, sound: bytes) -> bytes:
    """Damages a valid message: overwrites or swaps bytes, or returns random bytes."""
    at = provider.ConsumeIntInRange(0, len(sound))
    keep = provider.ConsumeIntInRange(0, len(sound))
    way = provider.ConsumeIntInRange(0, 2)
    noise = provider.ConsumeBytes(64)
    if way == 0:
        return noise
    if way == 1:
        return sound[:at] + noise + sound[at + len(noise) :]
    return sound[:at] + noise + sound[keep:]


NUMBERS = (0, 1, -1, 2, 7, 255, 1 << 31, 1 << 70, 0.5, -1e308, float("nan"), True, None, "", "1")


def changed(provider: atheris.FuzzedDataProvider, node: Any) -> Any:
    """Returns JSON with one value changed, left out or doubled, at any depth."""
    if isinstance(node, dict | list) and node and provider.ConsumeIntInRange(0, 4):
        whole = dict(node) if isinstance(node, dict) else dict(enumerate(node))
        key = provider.PickValueInList(list(whole))
        if provider.ConsumeIntInRange(0, 9):
            whole[key] = changed(provider, whole[key])
        elif provider.ConsumeBool():
            del whole[key]
        else:
            whole["more" if isinstance(node, dict) else len(node)] = whole[key]
        return whole if isinstance(node, dict) else list(whole.values())
    if type(node) is int and provider.ConsumeBool():
        return node + provider.ConsumeIntInRange(-2, 2)
    if isinstance(node, str) and provider.ConsumeBool():
        return damaged(provider, node.encode()).decode(errors="replace")
    return provider.PickValueInList([*NUMBERS, [], {}, [node], [[node]]])


def changed_text(provider: atheris.FuzzedDataProvider, text: bytes | str) -> bytes:
    """Returns JSON with some values changed, or a damaged text."""
    if not provider.ConsumeIntInRange(0, 4):
        return damaged(provider, text if isinstance(text, bytes) else text.encode())
    found = json.loads(text)
    for _ in range(provider.ConsumeIntInRange(1, 3)):
        found = changed(provider, found)
    return json.dumps(found).encode()


def fuzz_public_network(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes public networks, and encodes the parsed ones again."""
    found = nescio.mpc.PublicNetwork.from_bytes(changed_text(provider, NETWORK.to_bytes()))
    assert nescio.mpc.PublicNetwork.from_bytes(found.to_bytes()).digest == found.digest


def fuzz_first_message(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes the first message of parties that prepare inferences, or that infer."""
    ours, theirs = nescio.net.Channel.pair(timeout=5)
    if provider.ConsumeBool():
        theirs.send("PREP", changed_text(provider, json.dumps(PREPARING)))
        assert len(agreement.agree_to_prepare(ours, "client", NETWORK, 1)) == 64
        return
    contents = store.Contents("client", NETWORK.digest, SESSION, 9, 1)
    theirs.send("NEXT", changed_text(provider, json.dumps(INFERRING)))
    following, batch = agreement.agree_to_infer(ours, "client", contents, 2, 5)
    assert 2 <= following <= 9
    assert 1 <= batch <= 5


def fuzz_masked_inputs(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes the sizes of a client's masked inputs."""
    ours, theirs = nescio.net.Channel.pair(timeout=5)
    theirs.send("INPT", bytes(provider.ConsumeIntInRange(0, 200)))
    assert 1 <= len(online.receive_inputs(ours, NETWORK, 3)) <= 3


def fuzz_inferences(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes stores of prepared inferences; what they give is what was written."""
    INFERENCES.write_bytes(damaged(provider, STORE))
    with store.Store(INFERENCES) as found:
        for number in range(found.next, found.contents.count):
            assert found.use(number) == PARTS[number]


def fuzz_public_plan(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes public plans, and encodes the parsed ones again."""
    found = plans.PublicPlan.from_bytes(changed_text(provider, PLAN.public.to_bytes()))
    again = plans.PublicPlan.from_bytes(found.to_bytes())
    assert request.plan_digest(again) == request.plan_digest(found)
    assert len(found.encode(np.zeros((1, *found.inputs)))) == 1


def fuzz_plan(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes files of plans: the metadata and the headers of arrays, or any bytes."""
    data = PLAN_BYTES
    if provider.ConsumeBool():
        data = damaged(provider, data)
    else:
        metadata = dict(HEADER["__metadata__"])
        name = provider.PickValueInList(sorted(metadata))
        metadata[name] = changed_text(provider, metadata[name]).decode(errors="replace")
        data = save({"1.0": np.ones((2, 1, 2, 2), np.int16)}, metadata)
        whole = json.dumps({**HEADER, "__metadata__": metadata}).encode()
        if provider.ConsumeBool():
            data = len(whole).to_bytes(8, "little") + whole + PLAN_BYTES[HEADER_END:]
    PLAN_FILE.write_bytes(data)
    found = nescio.mpc.Plan.load(PLAN_FILE)
    outputs = found.simulate(np.zeros((1, *found.public.inputs))).outputs
    assert len(outputs) == 1
    assert str(found.report)


def fuzz_request(provider: atheris.FuzzedDataProvider) -> None:
    """Fuzzes the first frame of a client of a service."""
    sound = provider.PickValueInList(REQUESTS)
    found = request.Request.from_bytes(changed_text(provider, json.dumps(sound)))
    assert found.what in ("prepare", "infer")
    assert (found.count > 0) == (found.what == "prepare")


def one_input(data: bytes) -> None:
    """Runs one input of the fuzzer."""
    provider = atheris.FuzzedDataProvider(data)
    target = provider.PickValueInList(
        [
            *(fuzz_public_network, fuzz_first_message, fuzz_masked_inputs, fuzz_inferences),
            *(fuzz_public_plan, fuzz_plan, fuzz_request),
        ]
    )
    try:
        target(provider)
    except nescio.NescioError:
        return


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
