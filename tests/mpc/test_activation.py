"""The online step of a layer: lookups in one-time tables, by both parties."""

import numpy as np
import pytest

from mpc.layers import relu
from nescio import _core
from nescio.errors import ArgumentError
from nescio.mpc._activation import Activation, ClientLookups, ServerLookups
from nescio.mpc._dealer import insecure_tables
from nescio.mpc._tables import Tables
from spec import lut

POOL = _core.ThreadPool(1)


def run(activation, shift, x, seed=1):
    """Runs a layer of both parties; returns results, the client's share of x, and the messages."""
    random = np.random.default_rng(seed)
    x1 = random.integers(0, 1 << 32, len(x), np.uint32)
    mask = random.integers(0, 1 << 32, len(x), np.uint32)
    mine, other = insecure_tables(len(x), activation.bits, activation.outputs, random)
    client = ClientLookups(activation, other, shift, x1, POOL)
    server = ServerLookups(activation, mine, shift, client.places, POOL)
    asked = server.turn(x.view(np.uint32) - x1)
    answered = client.turn(asked, mask)
    return server.results(answered) - mask, x1, (client.places, asked, answered)


@pytest.mark.parametrize("bits", range(4, 13))
@pytest.mark.parametrize("tier", _core.supported_tiers())
def test_shares_of_entries_are_those_of_the_specification(bits, tier):
    random = np.random.default_rng(bits)
    for outputs in (3, 8, 9, 16):
        entries = random.integers(0, 1 << outputs, 1 << bits)
        activation = Activation(lambda _, found=entries: found, bits=bits, outputs=outputs)
        tables, _ = insecure_tables(40, bits, outputs, random)
        opened = random.integers(0, 1 << bits, 40, np.uint16)
        found = _core.lut_look_up(bits, activation._twice, tables.one_hot, opened, POOL, tier)
        expected = [
            lut.look_up(
                int.from_bytes(share.tobytes(), "little"), activation.entries.tolist(), int(place)
            )
            for share, place in zip(tables.one_hot, opened, strict=True)
        ]
        assert found.tolist() == expected


def test_numbers_are_those_of_the_specification():
    random = np.random.default_rng(5)
    for party in (0, 1):
        shares = random.integers(0, 1 << 32, (16, 50), np.uint32)
        opened = random.integers(0, 1 << 16, 50, np.uint16)
        totals = opened.astype(np.uint32) if party == 0 else np.zeros(50, np.uint32)
        for number in range(16):
            _core.lut_add_dabits(number, opened, shares[number], totals)
        expected = [
            lut.to_number(party, int(place), [int(one) for one in own])
            for place, own in zip(opened, shares.T, strict=True)
        ]
        assert totals.tolist() == expected


@pytest.mark.parametrize(
    ("bits", "outputs", "shift"), [(8, 8, 12), (8, 8, 24), (4, 3, 9), (9, 9, 7), (12, 16, 20)]
)
def test_a_layer_gives_the_rounded_values(bits, outputs, shift):
    half = 1 << bits - 1
    activation = Activation(lambda x: relu(x) % (1 << outputs), bits=bits, outputs=outputs)
    x = np.random.default_rng(2).integers(-half << shift, (half - 1) << shift, 5000).astype("i4")
    found, x1, _ = run(activation, shift, x)
    down = np.maximum(x >> shift, 0) % (1 << outputs)
    up = np.maximum((x >> shift) + 1, 0) % (1 << outputs)
    assert ((found == down) | (found == up)).all()
    expected, wrapped = activation.simulate(x.view(np.uint32), x1, shift)
    assert np.array_equal(found, expected)
    assert not wrapped.any()


def test_without_a_shift_the_entries_are_exact():
    activation = Activation(lambda x: x * x % 256, bits=8)
    x = np.arange(-128, 128, dtype=np.int32)
    found, _, _ = run(activation, 0, x)
    assert found.tolist() == [value * value % 256 for value in range(-128, 128)]


def test_rounding_has_no_bias():
    activation = Activation(relu, bits=8)
    x = np.full(40_000, (17 << 12) + 1024, np.int32)  # 17.25
    found, _, _ = run(activation, 12, x)
    assert abs(found.mean() - 17.25) < 5 * (0.25 * 0.75 / 40_000) ** 0.5


def test_values_outside_the_window_wrap_and_are_counted():
    activation = Activation(relu, bits=8, low=-50)
    x = (np.array([-51, -50, 204, 205, 206]) << 10).astype(np.int32)
    dithers = np.full(5, 1023, np.uint32)  # rounds down
    found, wrapped = activation.simulate(x.view(np.uint32), dithers, 10)
    assert found.tolist() == [205, 0, 204, 205, 0]
    assert wrapped.tolist() == [True, False, False, False, True]


def test_a_relu_of_8_bits_takes_7_bytes_online():
    _, _, (ahead, asked, answered) = run(Activation(relu, bits=8), 12, np.zeros(1000, np.int32))
    assert len(ahead) == 1000
    assert len(asked) + len(answered) == 7 * 1000


def test_online_messages_do_not_depend_on_the_values():
    """Bytes of both messages are uniform, for values that are all the same."""
    count = 50_000
    for value in (0, -5 << 12):
        x = np.full(count, value, np.int32)
        _, _, (_, asked, answered) = run(Activation(relu, bits=8), 12, x, seed=abs(value) + 1)
        for part in (asked[:count], asked[count:], answered[:count], answered[count:]):
            counts = np.bincount(part, minlength=256)
            expected = len(part) / 256
            chi = float(((counts - expected) ** 2 / expected).sum())
            assert abs(chi - 255) < 6 * (2 * 255) ** 0.5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bits": 3}, "bits"),
        ({"outputs": 17}, "outputs"),
        ({"outputs": 6}, "from 0 to 127, expected 256 entries from 0 to 63"),
        ({"low": 1}, "low"),
        ({"low": -256}, "low"),
    ],
)
def test_functions_that_no_table_has(options, said):
    with pytest.raises(ArgumentError, match=said):
        Activation(relu, **options)


def test_tables_of_another_activation():
    tables = Tables.empty(4, 8, 8)
    with pytest.raises(ArgumentError, match="found 8 bits and entries of 8, expected 9 and 9"):
        ClientLookups(Activation(relu, bits=9), tables, 12, np.zeros(4, np.uint32), POOL)
    with pytest.raises(ArgumentError, match="shift"):
        ServerLookups(Activation(relu), tables, 25, np.zeros(4, np.uint8), POOL)


@pytest.mark.parametrize(("bits", "outputs"), [(8, 8), (8, 5), (6, 9), (10, 16), (4, 1)])
def test_signed_entries_keep_their_sign(bits, outputs):
    half = 1 << outputs - 1
    activation = Activation(
        lambda x: np.clip(-3 * x, -half, half - 1), bits=bits, outputs=outputs, signed=True
    )
    size = 1 << bits - 1
    x = np.random.default_rng(4).integers(-size << 9, (size - 1) << 9, 3000).astype(np.int32)
    results, dithers, _ = run(activation, 9, x)
    simulated, wrapped = activation.simulate(x.view(np.uint32), dithers, 9)
    assert np.array_equal(results, simulated)
    assert not wrapped.any()
    expected = np.clip(-3.0 * (x / 512), -half, half - 1)
    assert np.abs(results.view(np.int32) - expected).max() <= 3 + 1e-9


def test_signed_entries_out_of_range():
    with pytest.raises(ArgumentError, match="entries from -8 to 7"):
        Activation(lambda x: x, bits=5, outputs=4, signed=True)
    with pytest.raises(ArgumentError, match="found float64"):
        Activation(lambda x: x * float("nan"), bits=5)
    with pytest.raises(ArgumentError, match="found fractions, expected integers"):
        Activation(np.tanh, bits=5, signed=True)
    with pytest.raises(ArgumentError, match="found <U1, expected 32 integers"):
        Activation(lambda x: np.full(len(x), "a"), bits=5)
