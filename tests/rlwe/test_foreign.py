"""Products by another library: SEAL's BFV, as TenSEAL has it, of the polynomials that we encode."""

import numpy as np
import pytest

from mpc.layers import convolve, random_input, random_weights, spec_sum
from mpc.layers import polynomials as encoded
from nescio.mpc._encoding import Encoding
from nescio.mpc._layout import ConvolutionShape, linear
from nescio.mpc._linear import ClientKeys, PublicKey, ServerWeights, ciphertexts
from rlwe.polynomials import N
from spec import rlwe_encoding

seal = pytest.importorskip(
    "tenseal.sealapi", reason="TenSEAL is not installed: pip install 'nescio[foreign]'"
)
MESSAGES = 1 << 32
MODULUS_BITS = [36, 36, 37]  # SEAL keeps the last prime for keys


class Bfv:
    """SEAL's BFV with our ring and messages, for polynomials of coefficients."""

    def __init__(self):
        given = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
        given.set_poly_modulus_degree(N)
        given.set_coeff_modulus(seal.CoeffModulus.Create(N, MODULUS_BITS))
        given.set_plain_modulus(MESSAGES)
        self.context = seal.SEALContext(given, True, seal.SEC_LEVEL_TYPE.TC128)
        assert self.context.parameters_set(), self.context.parameters_error_message()
        keys, public = seal.KeyGenerator(self.context), seal.PublicKey()
        keys.create_public_key(public)
        self._encryptor = seal.Encryptor(self.context, public, keys.secret_key())
        self._evaluator = seal.Evaluator(self.context)
        self.decryptor = seal.Decryptor(self.context, keys.secret_key())

    def encrypt(self, polynomial):
        ciphertext = seal.Ciphertext(self.context)
        self._encryptor.encrypt(plaintext(polynomial), ciphertext)
        return ciphertext

    def sum_of_products(self, ciphertexts, weights):
        """Returns the sum of ciphertexts times polynomials of weights."""
        total = None
        for ciphertext, polynomial in zip(ciphertexts, weights, strict=True):
            if not polynomial.any():
                continue
            product = seal.Ciphertext(self.context)
            self._evaluator.multiply_plain(ciphertext, plaintext(polynomial), product)
            if total is None:
                total = product
            else:
                self._evaluator.add_inplace(total, product)
        return total

    def decrypt(self, ciphertext):
        found = seal.Plaintext()
        self.decryptor.decrypt(ciphertext, found)
        count = found.coeff_count()
        return np.array([found.data(k) if k < count else 0 for k in range(N)], np.uint32)


def plaintext(polynomial):
    """Writes a polynomial modulo 2^32 as SEAL reads it: hexadecimal, the highest power first."""
    terms = [(k, int(polynomial[k]) % MESSAGES) for k in np.flatnonzero(polynomial)[::-1]]
    return seal.Plaintext(" + ".join(f"{value:X}x^{k}" for k, value in terms) or "0")


@pytest.fixture(scope="module")
def bfv():
    return Bfv()


@pytest.mark.parametrize(
    "shape",
    [
        ConvolutionShape(5, 4, (12, 12), (3, 3), (1, 1), (1, 1)),
        ConvolutionShape(3, 8, (20, 20), (3, 2), (2, 2), (1, 0)),
        linear(300, 20),
    ],
    ids=str,
)
def test_products_of_seal_are_ours(bfv, pool, rng, shape):
    """Coefficient for coefficient: the same encoding, the same results, ours 1 off at times."""
    encoding = Encoding.of(shape)
    (layout,) = encoding.layouts
    x, weights = random_input(rng, shape), random_weights(rng, shape)
    polynomials, kernels = layout.encode(x), encoded(encoding, [weights])
    assert encoding.tile_count == 1
    sent = [bfv.encrypt(polynomial) for polynomial in polynomials]
    answers = [bfv.sum_of_products(sent, kernel) for kernel in kernels]
    assert min(map(bfv.decryptor.invariant_noise_budget, answers)) > 0
    results = [
        bfv.decrypt(answer)[own]
        for answer, own in zip(answers, rlwe_encoding.positions(spec_sum(encoding)), strict=True)
    ]
    found = encoding.decode(np.concatenate(results))
    assert np.array_equal(found, convolve(shape, x, weights))

    keys = ClientKeys(pool)
    server = ServerWeights(encoding, [weights], pool)
    inputs = ciphertexts(layout, keys.encrypt(layout, x), pool)
    answer, share = server.evaluate(PublicKey(keys.public_key, pool), [inputs])
    ours = share + keys.decrypt(encoding, answer)
    assert np.abs((ours - found).astype(np.int32)).max() <= 1


def test_a_ciphertext_of_seal_carries_as_much(bfv, rng, tmp_path):
    """N numbers modulo 2^32, in more bytes: two residues of 36 bits as words, and no seed."""
    numbers = rng.integers(0, MESSAGES, N, np.uint32)
    ciphertext = bfv.encrypt(numbers)
    assert np.array_equal(bfv.decrypt(ciphertext), numbers)
    ciphertext.save(str(tmp_path / "ciphertext"))
    ours = Encoding.of(linear(N, 1)).bytes_in
    assert (tmp_path / "ciphertext").stat().st_size > 2 * ours
