"""Base transfers: comparison with the specification, and malicious parties."""

import subprocess
import sys

import numpy as np
import pytest
from nacl import bindings as sodium

from nescio.errors import ArgumentError, MalformedMessageError, ResourceError
from nescio.ot import _base_ot
from nescio.ot._base_ot import receive_base, send_base
from nescio.ot._randomness import SystemRandomness, insecure_seeded
from ot.loopback import run_both
from spec import ot_base as spec

COINS = SystemRandomness()
GOOD = spec.encode(spec.multiply(7, spec.BASE))
ORDER_TWO = spec.affine(0, spec.P - 1)
ORDER_FOUR = spec.affine(spec.ROOT, 0)
# An element of order 8: L times a point of full order.
ORDER_EIGHT = next(
    point
    for y in range(2, 100)
    if (found := spec.decode(y.to_bytes(32, "little"))) is not None
    and spec.encode(spec.multiply(4, point := spec.multiply(spec.L, found)))
    == spec.encode(ORDER_TWO)
)


def mixed(small):
    return spec.encode(spec.add(spec.decode(GOOD), small))


BAD_POINTS = {
    "identity": spec.encode(spec.IDENTITY),
    "identity with a sign": bytes([1]) + bytes(30) + b"\x80",
    "identity, not canonical": (spec.P + 1).to_bytes(32, "little"),
    "order 2": spec.encode(ORDER_TWO),
    "order 4": spec.encode(ORDER_FOUR),
    "order 8": spec.encode(ORDER_EIGHT),
    "good and order 2": mixed(ORDER_TWO),
    "good and order 4": mixed(ORDER_FOUR),
    "good and order 8": mixed(ORDER_EIGHT),
    "zero": bytes(32),
    "not on the curve": (2).to_bytes(32, "little"),
    "y = p + 3, not canonical": (spec.P + 3).to_bytes(32, "little"),
    "all ones": b"\xff" * 32,
}


def run(count, choices, sender_coins=COINS, receiver_coins=COINS, tamper=(None, None)):
    return run_both(
        lambda channel: send_base(channel, count, sender_coins),
        lambda channel: receive_base(channel, choices, receiver_coins),
        *tamper,
    )


# ---- Correct results -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        *((kind, count) for kind in ("zeros", "ones", "random") for count in (1, 127, 128)),
        ("random", 1000),
    ],
)
def test_the_receiver_gets_the_key_that_it_chose_and_only_that(count, kind, rng):
    choices = {
        "zeros": np.zeros(count, np.uint8),
        "ones": np.ones(count, bool),
        "random": rng.integers(0, 2, count, np.uint8),
    }[kind]
    sender, receiver = run(count, choices)
    keys, chosen = sender.get(), receiver.get()
    assert (keys.shape, chosen.shape) == ((count, 2, 16), (count, 16))
    assert (keys.dtype, chosen.dtype) == (np.uint8, np.uint8)
    rows = np.arange(count)
    assert (chosen == keys[rows, choices.astype(int)]).all()
    assert len({key.tobytes() for key in keys.reshape(-1, 16)}) == 2 * count


def test_a_transcript_is_that_of_the_specification():
    choices = [0, 1, 1]
    sender, receiver = run(
        3, np.array(choices, np.uint8), insecure_seeded(b"s"), insecure_seeded(b"r")
    )
    party = spec.Sender(insecure_seeded(b"s").draw)
    reply, chosen = spec.receive(insecure_seeded(b"r").draw, choices, party.hello())
    assert sender.sent == [("OTBS", party.hello())]
    assert receiver.sent == [("OTBR", reply)]
    assert sender.get().tobytes() == b"".join(b"".join(pair) for pair in party.keys(3, reply))
    assert receiver.get().tobytes() == b"".join(chosen)


def test_the_bytes_on_the_wire():
    sender, receiver = run(128, np.zeros(128, np.uint8))
    assert [len(data) for _, data in sender.sent] == [48]
    assert [len(data) for _, data in receiver.sent] == [16 + 64 * 32] + [64 * 32] * 3


# ---- The group, against the specification --------------------------------------------------------


def test_the_specification_knows_the_base_point():
    # RFC 8032, section 5.1: B's y is 4/5, and L B is the identity.
    assert spec.encode(spec.BASE) == _base_ot._BASE_POINT
    assert spec.encode(spec.multiply(spec.L, spec.BASE)) == bytes([1]) + bytes(31)
    assert spec.encode(ORDER_TWO) == _base_ot._ORDER_TWO


def test_libsodium_computes_as_the_specification(rng):
    for _ in range(4):
        a, b = (spec.scalar(rng.bytes(64)) for _ in range(2))
        p, q = (spec.multiply(k, spec.BASE) for k in (a, b))
        scalar, points = a.to_bytes(32, "little"), [spec.encode(p), spec.encode(q)]
        assert sodium.crypto_scalarmult_ed25519_base_noclamp(scalar) == points[0]
        assert sodium.crypto_core_ed25519_add(*points) == spec.encode(spec.add(p, q))
        difference = spec.add(p, spec.negate(q))
        assert sodium.crypto_core_ed25519_sub(*points) == spec.encode(difference)
        product = sodium.crypto_scalarmult_ed25519_noclamp(scalar, points[1])
        assert product == spec.encode(spec.multiply(a, q))


def test_libsodium_maps_to_the_curve_as_the_specification_and_clears_the_cofactor(rng):
    strings = [bytes(32), b"\xff" * 32, *(rng.bytes(32) for _ in range(20))]
    for string in strings:
        point = sodium.crypto_core_ed25519_from_uniform(string)
        assert point == spec.encode(spec.from_uniform(string))
        assert spec.is_valid(point) or point == bytes([1]) + bytes(31)


@pytest.mark.parametrize("name", BAD_POINTS)
def test_libsodium_and_the_specification_refuse_the_same_points(name):
    assert not spec.is_valid(BAD_POINTS[name])
    assert not sodium.crypto_core_ed25519_is_valid_point(BAD_POINTS[name])
    assert spec.is_valid(GOOD)
    assert sodium.crypto_core_ed25519_is_valid_point(GOOD)


def test_hashes_of_another_session_index_branch_or_point_are_unrelated():
    session, label = bytes(32), _base_ot._LABEL.pack
    inputs = [
        (session, label(0, 0), GOOD),
        (b"\1" + session[1:], label(0, 0), GOOD),
        (session, label(1, 0), GOOD),
        (session, label(0, 1), GOOD),
        (session, label(0, 0), _base_ot._BASE_POINT),
    ]
    assert len({_base_ot._hash_to_curve(*each) for each in inputs}) == len(inputs)
    assert len({_base_ot._key(*each, bytes(32)) for each in inputs}) == len(inputs)


# ---- Malicious parties ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", BAD_POINTS)
def test_a_receiver_refuses_a_bad_point(name):
    def cheat(kind, data):
        return data[:16] + BAD_POINTS[name]

    _, receiver = run(3, np.ones(3, np.uint8), tamper=(cheat, None))
    with pytest.raises(MalformedMessageError, match="the sender's point: found .*, expected"):
        receiver.get()
    assert receiver.sent == []


@pytest.mark.parametrize("name", BAD_POINTS)
@pytest.mark.parametrize("place", [0, 1])
def test_a_sender_refuses_a_bad_point(name, place):
    begin = 16 + 64 * 2 + 32 * place

    def cheat(kind, data):
        return data[:begin] + BAD_POINTS[name] + data[begin + 32 :]

    sender, _ = run(3, np.ones(3, np.uint8), tamper=(None, cheat))
    message = f"point {place} of transfer 2: found {BAD_POINTS[name].hex()}, expected"
    with pytest.raises(MalformedMessageError, match=message):
        sender.get()


def test_a_sender_refuses_points_that_cancel():
    seen = []

    def keep(kind, data):
        seen.append(data)
        return data

    def cheat(kind, data):
        # r_0 = -H(0, r_1), so that the sender's key would be one of the identity's.
        hello = seen[0]
        session = spec.session_name(1, hello[:16], data[:16], hello[16:])
        point = spec.negate(spec.hash_to_curve(session, 0, 0, GOOD))
        return data[:16] + spec.encode(point) + GOOD

    sender, _ = run(1, np.zeros(1, np.uint8), tamper=(keep, cheat))
    with pytest.raises(
        MalformedMessageError, match="transfer 0: found points whose sum in a branch"
    ):
        sender.get()


def test_points_repeated_in_a_batch_give_unrelated_keys():
    """The attack of McQuoid, Rosulek and Roy on batches without domain separation."""

    def cheat(kind, data):
        return data[:16] + data[16:80] * 4

    sender, _ = run(4, np.zeros(4, np.uint8), tamper=(None, cheat))
    assert len({key.tobytes() for key in sender.get().reshape(-1, 16)}) == 8


@pytest.mark.parametrize("choice", [0, 1])
def test_what_a_receiver_sends_looks_the_same_for_either_choice(choice):
    """Both points are in the subgroup, and no bit of either tells the choice."""
    count = 1000
    _, receiver = run(count, np.full(count, choice, np.uint8))
    receiver.get()
    raw = b"".join(data for _, data in receiver.sent)
    points = np.frombuffer(raw[16:], np.uint8).reshape(count, 2, 32)
    assert all(
        sodium.crypto_core_ed25519_is_valid_point(p.tobytes()) for p in points.reshape(-1, 32)
    )
    bits = np.unpackbits(points, axis=2, bitorder="little")[:, :, [*range(252), 255]]
    # Six standard deviations: a false alarm in one of a million runs.
    assert (abs(bits.mean(axis=0) - 0.5) < 6 * 0.5 / count**0.5).all()
    assert (points[:, 0] != points[:, 1]).any(axis=1).all()


def test_frames_of_another_length_are_refused():
    sender, receiver = run(4, np.zeros(3, np.uint8))
    with pytest.raises(MalformedMessageError, match="OTBR of 208 bytes, expected OTBR of 272"):
        sender.get()
    assert receiver.get().shape == (3, 16)


# ---- Arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, -1, _base_ot.MAX_TRANSFERS + 1, 1.5, True])
def test_a_sender_refuses_counts_that_cannot_be(count):
    with pytest.raises(ArgumentError, match="count: found"):
        send_base(None, count, COINS)


@pytest.mark.parametrize(
    "choices",
    [np.array([0, 2], np.uint8), np.zeros((2, 2), np.uint8), np.zeros(2), np.zeros(0, bool), "01"],
)
def test_a_receiver_refuses_choices_that_cannot_be(choices):
    with pytest.raises(ArgumentError, match="choices"):
        receive_base(None, choices, COINS)


def test_a_libsodium_that_takes_points_outside_the_group_is_refused(monkeypatch):
    _base_ot._require_point_checks.cache_clear()
    monkeypatch.setattr(_base_ot.sodium, "crypto_core_ed25519_is_valid_point", lambda point: True)
    with pytest.raises(ResourceError, match="CVE-2025-69277"):
        send_base(None, 1, COINS)
    monkeypatch.setattr(_base_ot.sodium, "has_crypto_core_ed25519", False)
    with pytest.raises(ResourceError, match="without the operations"):
        receive_base(None, np.zeros(1, bool), COINS)


def test_without_pynacl_a_session_names_the_extra():
    script = (
        "import sys\nsys.modules['nacl'] = None\n"
        "import nescio.net, nescio.ot, nescio.ot.device\n"  # need no base OTs
        "channel, _ = nescio.net.Channel.pair()\n"
        "try:\n    nescio.ot.Sender(channel)\nexcept ImportError as error:\n    print(error)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout == "nescio.ot needs PyNaCl: pip install 'nescio[ot]'\n"
    assert not result.stderr


# ---- Coins ---------------------------------------------------------------------------------------


def test_seeded_coins_are_one_stream_however_they_are_drawn():
    whole = insecure_seeded(b"a").draw(20000)
    pieces = insecure_seeded(b"a")
    assert b"".join(pieces.draw(n) for n in (1, 0, 4095, 1, 9000, 6903)) == whole
    assert insecure_seeded(b"b").draw(20000) != whole


def test_the_systems_coins_differ():
    assert COINS.draw(32) != COINS.draw(32)
    assert len(COINS.draw(100)) == 100
