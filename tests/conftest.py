"""Fixtures of all tests: the CPU tiers of this machine, random numbers, certificates."""

import datetime
import ipaddress
import os
import secrets

import numpy as np
import pytest

from nescio import _core

try:
    from hypothesis import HealthCheck, settings
except ModuleNotFoundError:
    pass  # tests that need it fail; GPU tests run without most packages
else:
    settings.register_profile(
        "nescio", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("nescio")

# Ray reads these when it is imported, which some tests do when they are collected.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

TIERS = _core.supported_tiers()


def pytest_addoption(parser):
    parser.addoption(
        "--only-default-tier",
        action="store_true",
        help="leave out tests that name their CPU tier, use an emulated device or measure load",
    )


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--only-default-tier"):
        return
    left = [i for i in items if not {"tier", "device", "devices"} & set(i.fixturenames)]
    left = [i for i in left if "device" not in i.path.name and not i.get_closest_marker("load")]
    config.hook.pytest_deselected(items=[i for i in items if i not in set(left)])
    items[:] = left


@pytest.fixture(params=TIERS)
def tier(request):
    """Each CPU tier that this machine supports."""
    return request.param


@pytest.fixture(scope="session")
def pool():
    return _core.ThreadPool(2)


@pytest.fixture
def rng():
    """Deterministic random numbers: for test data, never for keys."""
    return np.random.default_rng(20261121)


class Exchanged:
    """An array with only the DLPack protocol, like arrays of other libraries.

    If it claims to be on a GPU, its library can copy it to the host if `copies` is true.
    """

    def __init__(self, array, device=(1, 0), *, copies=True):
        self._array = np.array(array)
        self._device = device
        self._copies = copies

    def __dlpack__(self, **arguments):
        if not self._copies and arguments.get("dl_device") is not None:
            raise BufferError("cannot export to another device")
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._device


@pytest.fixture
def dlpack():
    return Exchanged


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A self-signed certificate for 127.0.0.1 and its key."""
    return _certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """Another self-signed certificate for the same name."""
    return _certificate(tmp_path_factory.mktemp("stranger"))


def _certificate(folder):
    # Imported here: GPU tests run without most packages.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "cert.pem", folder / "key.pem"
