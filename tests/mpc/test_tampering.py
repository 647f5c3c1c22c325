"""Frames that are changed, lost, repeated, or never come, in both phases: nobody hangs."""

import numpy as np
import pytest

from mpc.relay import Cut, relayed
from mpc.sessions import Dealt, Preparation, input_of, small_network
from nescio.errors import (
    ChannelError,
    MessageError,
    MismatchError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
)
from nescio.mpc._agreement import PROTOCOL
from nescio.mpc._public import PublicNetwork
from nescio.mpc._store import Store

NOISE = np.random.default_rng(3).bytes(200)


def middle(frame):
    raise Cut(frame.raw[: len(frame.raw) // 2])


def silence(_):
    raise Cut


REFUSED = {
    "cut short": lambda frame: frame.changed(data=frame.data[:-1]),
    "too long": lambda frame: frame.changed(data=frame.data + b"\0"),
    "empty": lambda frame: frame.changed(data=b""),
    "of another kind": lambda frame: frame.changed(kind="ELSE"),
    "a bit of its length": lambda frame: frame.changed(length=len(frame.data) ^ 1 << 12),
    "the highest bit of its length": lambda frame: frame.changed(length=len(frame.data) | 1 << 63),
    "a bit of its number": lambda frame: frame.changed(number=frame.number ^ 1),
    "a bit of its kind": lambda frame: bytes([frame.raw[0] ^ 0x20]) + frame.raw[1:],
    "noise": lambda _: NOISE,
    "noise before it": lambda frame: NOISE[:5] + frame.raw,
}
"""Changes of a frame that its receiver refuses."""
GONE = {"cut in its middle": middle, "lost with the connection": silence}


@pytest.fixture
def random():
    return np.random.default_rng(5)


@pytest.fixture
def network(random):
    return small_network(random)


def at(place, change):
    """Changes one frame, named by its sender and its number, and no other."""
    return lambda frame: change(frame) if (frame.sender, frame.number) == place else frame.raw


def check(outcome, place, found):
    """Tests that the receiver of a wrong frame raised `found`, and that the sender ended too.

    A sender that expects nothing more after this frame has ended well before.
    """
    receiver, sender = outcome.errors if place[0] == "server" else outcome.errors[::-1]
    assert isinstance(receiver, found), (place, outcome)
    assert sender is None or isinstance(sender, ChannelError), (place, outcome)
    for error in (receiver, sender):
        assert error is None or len(str(error)) > 20
    if isinstance(sender, PeerRefusedError) and isinstance(receiver, MessageError):
        assert str(receiver)[:400] in str(sender)
    return sender is None


# ---- preparing -----------------------------------------------------------------------------------


@pytest.fixture
def preparation(network, tmp_path):
    return Preparation(network, tmp_path)


def places_of(outcome):
    """Returns the first and the last frame of each kind that each party sent."""
    assert outcome.errors == [None, None]
    ends = {}
    for frame in outcome.frames:
        ends.setdefault((frame.sender, frame.kind), []).append((frame.sender, frame.number))
    return sorted({place for found in ends.values() for place in (found[0], found[-1])})


def answered_by_none(outcome, sender):
    """Returns a party's frames after the other's last one: it may have ended before a refusal."""
    other = [number for number, frame in enumerate(outcome.frames) if frame.sender != sender]
    return [(sender, frame.number) for frame in outcome.frames[other[-1] + 1 :]]


PREPARING = {"PREP", "RLKY", "CIPH", "PROD", "TABL", "PLAC", "PARM", "DRAW", "FAKE", "TREE"}


LARGE = [(fault, 9) for fault in ("cut short", "of another kind", "noise", *GONE)]


@pytest.mark.parametrize(("fault", "bits"), [*((fault, 5) for fault in (*REFUSED, *GONE)), *LARGE])
def test_a_changed_frame_ends_both_parties_that_prepare(
    random, tmp_path, quick_transfers, fault, bits
):
    """Each kind of frame: a typed error at both, and no store at who has not all of it.

    A client has all of it with the last message that it gets. Its store may have no counterpart.
    Tables of 2^9 entries are made by trees.
    """
    preparation = Preparation(small_network(random, bits=bits), tmp_path)
    good = preparation.run()
    kinds = PREPARING | {"TKEY", "FLIP"} if bits == 9 else PREPARING
    assert {frame.kind for frame in good.frames} == kinds
    last = answered_by_none(good, "client")
    for place in places_of(good):
        change = REFUSED.get(fault) or GONE[fault]
        outcome = preparation.run(at(place, change))
        finished = check(outcome, place, MessageError if fault in REFUSED else PeerGoneError)
        assert preparation.left() == preparation.paths[:1] * finished
        assert place in last or not finished
    assert preparation.run().errors == [None, None]


def test_a_party_that_vanishes_from_real_transfers(preparation, tmp_path):
    """The same with the frames of base OTs and of OT extension. About 4 s."""
    good = preparation.run()
    kinds = {}
    for frame in good.frames:
        kinds.setdefault((frame.sender, frame.kind), (frame.sender, frame.number))
    assert {kind for _, kind in kinds} >= {"OTBS", "OTBR", "OTSU", "TREE"}
    for place in kinds.values():
        check(preparation.run(at(place, silence)), place, PeerGoneError)


@pytest.mark.parametrize("kind", ["PREP", "RLKY", "CIPH", "PROD", "PARM", "TABL", "PLAC"])
def test_a_frame_that_never_comes_while_preparing(preparation, quick_transfers, kind):
    """A frame is lost and nobody closes: one party waits until its timeout, and tells the other."""
    lost = []

    def lose(frame):
        if lost or frame.kind != kind:
            return frame.raw
        lost.append(frame)
        return b""

    outcome = preparation.run(lose, timeout=0.3)
    errors = [error for error in outcome.errors if error is not None]
    assert all(isinstance(error, ChannelError | MismatchError) for error in errors), outcome
    assert any(isinstance(error, PeerTimeoutError | MismatchError) for error in errors), outcome
    assert len(errors) == 2 or kind == "PLAC"


def test_a_repeated_frame_is_refused_while_preparing(preparation, quick_transfers):
    """It arrives in place of the next one; after the last one, nobody reads it."""
    good = preparation.run()
    last = {frame.sender: (frame.sender, frame.number) for frame in good.frames}
    for place in places_of(good):
        outcome = preparation.run(at(place, lambda frame: 2 * frame.raw))
        if place in last.values():
            assert outcome.errors == [None, None]
        else:
            check(outcome, place, MismatchError)


def test_frames_in_another_order_are_refused(preparation, quick_transfers):
    """The client's key and its ciphertexts come one after the other."""
    held = []

    def swap(frame):
        if frame.kind == "RLKY":
            held.append(frame.raw)
            return b""
        return frame.raw + held.pop() if held and frame.kind == "CIPH" else frame.raw

    check(preparation.run(swap), ("client", 1), MismatchError)


@pytest.mark.parametrize("kind", ["RLKY", "CIPH"])
def test_residues_that_are_too_large_are_refused(preparation, quick_transfers, kind):
    def change(frame):
        return frame.changed(data=b"\xff" * len(frame.data)) if frame.kind == kind else frame.raw

    check(preparation.run(change), ("client", 1), MessageError)


@pytest.mark.parametrize("kind", ["PROD", "TABL", "PLAC", "TREE"])
def test_masked_contents_that_change_are_not_noticed(preparation, quick_transfers, kind):
    """Semi-honest parties: the check of a frame is that of its head. TLS protects its contents."""

    def change(frame):
        if frame.kind != kind:
            return frame.raw
        return frame.changed(data=bytes(byte ^ 1 for byte in frame.data))

    assert preparation.run(change).errors == [None, None]


def test_parties_of_other_networks_or_versions(preparation, network, random):
    other = small_network(random, shift=5)
    outcome = preparation.run(networks=(PublicNetwork.of(other), network))
    for error in outcome.errors:
        assert isinstance(error, MismatchError)
        assert "different networks: found" in str(error)

    def older(frame):
        return frame.changed(
            data=frame.data.replace(b'"protocol": %d' % PROTOCOL, b'"protocol": 0')
        )

    outcome = preparation.run(at(("client", 0), older))
    check(outcome, ("client", 0), MismatchError)
    said = f"the other party's protocol: found 0, expected {PROTOCOL}"
    assert said in str(outcome.errors[0])
    assert preparation.left() == []


# ---- inferences ----------------------------------------------------------------------------------

INFERRING = {"NEXT", "INPT", "ASKS", "ANSW", "OUTS"}


def used(dealt):
    """Returns the numbers of the next inference of both stores."""
    found = []
    for path in (dealt.client, dealt.server):
        with Store(path) as store:
            found.append(store.next)
    return found


def succeeds(dealt, x):
    """Runs the next inference on a new channel, and tests its outputs."""
    number = max(used(dealt))
    outcome = relayed(dealt.infer(x), dealt.serve())
    assert outcome.errors == [None, None]
    assert np.array_equal(outcome.values[0][0], dealt.expected(number, x))
    assert used(dealt) == [number + 1, number + 1]
    return outcome


@pytest.mark.parametrize("fault", [*REFUSED, *GONE])
def test_a_changed_frame_ends_both_parties_of_an_inference(network, random, tmp_path, fault):
    """At most the inference in flight is lost, and the next one works with the same stores."""
    dealt, x = Dealt(network, tmp_path, 30), input_of(network, random)
    good = succeeds(dealt, x)
    for place in places_of(good):
        before = used(dealt)
        change = at(place, REFUSED.get(fault) or GONE[fault])
        outcome = relayed(dealt.infer(x), dealt.serve(), change)
        finished = check(outcome, place, MessageError if fault in REFUSED else PeerGoneError)
        assert finished == (place in answered_by_none(good, "server"))
        assert all(0 <= now - was <= 1 for now, was in zip(used(dealt), before, strict=True))
        succeeds(dealt, x)


@pytest.mark.parametrize("fault", ["of another kind", "lost with the connection"])
def test_the_second_inference_of_a_session_is_lost_alone(network, random, tmp_path, fault):
    """It has no agreement of its own, and the next session agrees on the third one."""
    x = input_of(network, random)
    dealt = Dealt(network, tmp_path, 40)
    good = relayed(dealt.infer(x, x), dealt.serve(2)).frames
    again = [(f.sender, f.number) for f in good if f.kind in {"INPT", "OUTS"}][-2:]
    again += [(f.sender, f.number) for f in good if f.kind in {"ASKS", "ANSW"}][-4:]
    for place in again:
        first = max(used(dealt))
        change = at(place, REFUSED.get(fault) or GONE[fault])
        outcome = relayed(dealt.infer(x, x), dealt.serve(2), change)
        check(outcome, place, MessageError if fault in REFUSED else PeerGoneError)
        assert max(used(dealt)) == first + 2
        assert min(used(dealt)) >= first + 1
        succeeds(dealt, x)


@pytest.mark.parametrize("kind", sorted(INFERRING))
def test_a_frame_of_an_inference_that_never_comes(network, random, tmp_path, kind):
    dealt, x, lost = Dealt(network, tmp_path, 3), input_of(network, random), []

    def lose(frame):
        if lost or frame.kind != kind:
            return frame.raw
        lost.append(frame)
        return b""

    errors = relayed(dealt.infer(x), dealt.serve(), lose, timeout=0.5).errors
    assert all(isinstance(error, ChannelError) for error in errors if error is not None)
    if kind == "OUTS":  # the server ends well, and its connection with it
        assert isinstance(errors[0], PeerGoneError)
        assert errors[1] is None
    else:
        assert any(isinstance(error, PeerTimeoutError) for error in errors)
        assert None not in errors
    assert max(used(dealt)) <= 1
    succeeds(dealt, x)


def test_a_repeated_frame_is_refused_in_the_next_step(network, random, tmp_path):
    """The last one of a party is refused in the next inference of the session."""
    dealt, x = Dealt(network, tmp_path, 40), input_of(network, random)
    for place in places_of(succeeds(dealt, x)):
        outcome = relayed(dealt.infer(x, x), dealt.serve(2), at(place, lambda frame: 2 * frame.raw))
        check(outcome, place, MismatchError)
        succeeds(dealt, x)


def test_frames_of_an_earlier_session_are_refused_or_useless(network, random, tmp_path):
    """A relay that plays a whole inference again: the answers are for masks that are used up."""
    dealt, x = Dealt(network, tmp_path, 3), input_of(network, random)
    old = {(f.sender, f.number): f.raw for f in succeeds(dealt, x).frames}
    replay = relayed(dealt.infer(x), dealt.serve(), lambda frame: old[frame.sender, frame.number])
    assert replay.errors == [None, None]
    assert not np.array_equal(replay.values[0][0], dealt.expected(1, x))
    assert used(dealt) == [2, 2]
    succeeds(dealt, x)


@pytest.mark.parametrize("kind", ["INPT", "ASKS", "ANSW", "OUTS"])
def test_masked_messages_that_change_give_other_outputs(network, random, tmp_path, kind):
    """Semi-honest parties: nobody notices, and the outputs are wrong."""
    dealt, x = Dealt(network, tmp_path, 2), input_of(network, random)

    def change(frame):
        if frame.kind != kind:
            return frame.raw
        return frame.changed(data=bytes(byte ^ 0x55 for byte in frame.data))

    outcome = relayed(dealt.infer(x), dealt.serve(), change)
    assert outcome.errors == [None, None]
    assert not np.array_equal(outcome.values[0][0], dealt.expected(0, x))
    succeeds(dealt, x)
