"""`python -m benchmarks.infer transformer`: its formulas, beside plans and messages."""

import json

import numpy as np
import pytest

from benchmarks.infer.__main__ import main
from benchmarks.infer.encoder import feed_forward, measure
from benchmarks.infer.transformer import (
    BITS,
    MODELS,
    Model,
    block,
    log_error,
    product,
    scaling_bytes,
    tables,
    triple,
)
from nescio import _core
from nescio.mpc._encoding import Encoding
from nescio.mpc._layout import linear
from nescio.mpc._linear import ClientKeys, PublicKey, ServerWeights, ciphertexts
from nescio.mpc._plans.costs import costs


def test_the_feed_forward_half_has_the_costs_of_its_plan():
    network = feed_forward(64, 256, 32).quantized.network
    up, down = costs(network.public)
    bits = network.layers[0].shift + BITS
    lookups = tables(256 * 32, BITS, BITS)
    assert round(lookups.table_bytes) == up.table_bytes
    assert lookups.online_bytes == up.online_bytes - 4 * 64 * 32  # the input
    assert product(64, 256, 32, bits).product_bytes == up.linear_bytes
    assert product(256, 64, 32, 32).product_bytes == down.linear_bytes


def test_a_triple_has_the_bytes_of_its_two_products():
    """And the shares of both cross terms are right, for the small factors of the engine today."""
    rows, inner, columns, bits = 6, 8, 5, 20
    random, pool = np.random.default_rng(1), _core.ThreadPool(1)
    keys = ClientKeys(pool)
    public, sent = PublicKey(keys.public_key, pool), 0
    for outputs, batch in ((columns, rows), (rows, columns)):
        encoding = Encoding.of(linear(inner, outputs, batch), bits)
        (layout,) = encoding.layouts
        factor = random.integers(-100, 100, (outputs, inner), np.int16)
        masked = random.integers(0, 1 << bits, (inner, 1, batch), np.uint32)
        message = keys.encrypt(layout, masked)
        server = ServerWeights(encoding, [factor[:, :, None, None]], pool)
        answer, own = server.evaluate(public, [ciphertexts(layout, message, pool)])
        other = keys.decrypt(encoding, answer)
        expected = factor.astype(np.int64) @ masked[:, 0]
        found = (own + other).astype(np.int64).reshape(outputs, batch)
        assert set(np.unique((found - expected + 1) % (1 << bits))) <= {0, 1, 2}  # 1 off, at most
        sent += len(message) + len(answer)
    assert triple(rows, inner, columns, bits).product_bytes == sent


def test_a_scaled_number_takes_two_messages_for_each_bit_of_its_scale():
    assert scaling_bytes(3, 8, shared=10**9) == pytest.approx(2 * (8 + 7 + 6) / 8)


def test_shares_of_a_bit_times_a_number():
    """The identity behind it, for a bit shared by XOR and a number shared by addition."""
    for x, y in np.ndindex(2, 2):
        for own, other in ((3, 5), (-7, 2)):
            cross = x * other * (1 - 2 * y) + y * own * (1 - 2 * x)
            assert (x ^ y) * (own + other) == x * own + y * other + cross


def test_the_tables_of_the_page(tmp_path, capsys):
    path = tmp_path / "cases.json"
    assert main(["transformer", "--json", str(path)]) == 0
    assert "12 blocks" in capsys.readouterr().out
    cases = json.loads(path.read_text())
    sums = {case["model"]: case for case in cases if case.get("step") == "a block"}
    small, base = MODELS
    for model in MODELS:
        scores = model.heads * 128 * 128
        linear = 128 * (3 * model.width + model.hidden)
        norms = 128 * (5 * model.width + 2)
        assert sums[model.name]["lookups"] == 2 * scores - model.heads * 128 + linear + norms
        assert sums[model.name]["rounds"] == 19
    assert sums[small.name]["online_mb"] < sums[base.name]["online_mb"] < 20


def test_attention_grows_with_the_square_of_the_tokens():
    model = Model("small", 1, 64, 2, 256)
    short, long = (
        next(step for step in block(model, tokens) if step.step == "probabilities")
        for tokens in (64, 128)
    )
    assert long.lookups == 4 * short.lookups == 2 * 128 * 128


def test_the_feed_forward_half_runs():
    found = {case["phase"]: case for case in measure(48, 96, 4, 2)}
    assert found["products"]["bytes"] == found["products"]["computed"] + 2 * 16  # two headers
    assert found["online"]["bytes"] == found["online"]["computed"] + 4 * 16
    assert found["online"]["rounds"] == 2
    assert found["online"]["error"] < 0.1


def test_a_log_of_a_sum_is_a_tournament():
    """Of any number of scores, and more exact with wider tables."""
    assert log_error(37, 16) < 0.01 < log_error(37, 9) < 0.2


def test_tokens_that_are_refused(capsys):
    assert main(["transformer", "--tokens", "1"]) == 1
    assert "--tokens: found 1, expected 2 to 1024" in capsys.readouterr().err
