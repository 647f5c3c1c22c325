"""SIGHUP: tables and certificates are read again while lookups go on."""

import datetime
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import nescio as nescio_package
from commands.conftest import serving, write_words
from nescio.service import RemoteTable, TableAdmin
from nescio.service._reloaded import ReloadedServer

ROWS = np.arange(300, dtype="f4").reshape(100, 3)


def write(path, offset):
    """Puts other rows in the place of a table, as an operator should: by a rename."""
    new = path.with_name(f"new{path.suffix}")
    if path.suffix == ".npy":
        np.save(new, ROWS + offset)
    else:
        table_of(offset).save(new)
    os.replace(new, path)  # noqa: PTH105


def table_of(offset):
    """Makes a table with a version of its own: clients then know that it is another one."""
    return nescio_package.Table(ROWS + offset, version=str(offset))


def wait_for_id(url, params, seconds=10):
    end = time.monotonic() + seconds
    while httpx.get(f"{url}/v1/tables/words").json()["id"] != params.id.hex():
        assert time.monotonic() < end
        time.sleep(0.02)


def reload_both(paths, processes, urls, offset):
    for path, process in zip(paths, processes, strict=True):
        write(path, offset)
        process.send_signal(signal.SIGHUP)
    for url in urls:
        wait_for_id(url, table_of(offset).params)


def test_no_lookup_fails_during_20_reloads(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    paths = [folder / "words.nescio" for folder in folders]
    for path in paths:
        write(path, 0)
    found, failures, over = [], [], threading.Event()

    def look_up(urls):
        try:
            with RemoteTable(urls, "words", retries=20) as table:  # while one party is first
                while not over.is_set():
                    found.append(float(table.lookup([17])[0, 0]))
        except Exception as error:
            failures.append(error)

    with (
        serving(paths[0], "--party", 0, "--port", 0) as (first, a, _),
        serving(paths[1], "--party", 1, "--port", 0) as (second, b, _),
    ):
        threads = [threading.Thread(target=look_up, args=([a, b],)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for offset in range(1, 21):
            reload_both(paths, (first, second), (a, b), offset)
        time.sleep(0.2)
        over.set()
        for thread in threads:
            thread.join()
        with RemoteTable([a, b], "words") as table:
            assert table.lookup([17])[0, 0] == ROWS[17, 0] + 20
    assert failures == []
    assert set(found) <= {float(ROWS[17, 0] + offset) for offset in range(21)}
    assert len(set(found)) > 3


def test_a_table_that_cannot_be_read_stays_as_it_was(tmp_path):
    path = write_words(tmp_path)
    with serving(path, "--party", 0, "--port", 0, "--metrics") as (process, url, _):
        before = httpx.get(f"{url}/v1/tables/words").json()
        path.write_bytes(b"no array")
        process.send_signal(signal.SIGHUP)
        while "reload was refused" not in (line := process.stderr.readline()):
            assert line
        assert "words.npy" in line
        assert httpx.get(f"{url}/v1/tables/words").json() == before
        refused = 'nescio_reloads_total{result="refused",what="tables"} 1.0'
        assert refused in httpx.get(f"{url}/metrics").text


def certificate_of(url, name=None):
    """Fetches the certificate that a client gets, who names the server or not."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    parts = httpx.URL(url)
    with (
        socket.create_connection((parts.host, parts.port)) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        return ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True))


def rsa_key():
    return rsa.generate_private_key(65537, 2048)


def ec_key():
    return ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize("make_keys", [(ec_key, rsa_key, ec_key), (rsa_key, ec_key, rsa_key)])
def test_a_certificate_is_loaded_into_the_live_server(tmp_path, certificate, make_keys):
    cert, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    for source, target in zip(certificate, (cert, key), strict=True):
        target.write_bytes(Path(source).read_bytes())
    path = write_words(tmp_path)
    tls = ["--tls-cert", cert, "--tls-key", key]
    with serving(path, "--party", 0, "--port", 0, *tls) as (process, url, _):
        before = certificate_of(url)
        assert before.strip() in cert.read_text()
        cert.write_bytes(certificate_for(ec_key())[0])  # without its key
        process.send_signal(signal.SIGHUP)
        while "reload was refused" not in (line := process.stderr.readline()):
            assert line
        assert certificate_of(url) == before
        for make_key in make_keys:
            new_cert, new_key = certificate_for(make_key())
            cert.write_bytes(new_cert)
            key.write_bytes(new_key)
            process.send_signal(signal.SIGHUP)
            while "certificate is loaded again" not in (line := process.stderr.readline()):
                assert line
            assert certificate_of(url).strip() == new_cert.decode().strip()
            assert certificate_of(url, "a.example.org").strip() == new_cert.decode().strip()


def certificate_for(key):
    """Makes a certificate for a key; returns both as PEM."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "another")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7)
    made = (
        builder.not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def test_the_server_before_answers_for_a_while():
    tables = [nescio_package.Table(ROWS + offset) for offset in (0, 1)]
    servers = [
        ReloadedServer(nescio_package.Server(tables[0], threads=1, party=p), kept_seconds=0.5)
        for p in range(2)
    ]
    clients = [nescio_package.Client(table.params, table.tops) for table in tables]
    for party, server in enumerate(servers):
        server.replace(nescio_package.Server(tables[1], threads=1, party=party))
    queries = [client.query([5]) for client in clients]
    answers = [
        server.answer_batch([server.check(q.keys[party]) for q in (*queries, queries[0])])
        for party, server in enumerate(servers)
    ]
    for number, which in enumerate((0, 1, 0)):
        rows = clients[which].decode(queries[which], *(own[number] for own in answers))
        assert np.array_equal(rows, ROWS[[5]] + which)
    time.sleep(0.8)
    with pytest.raises(nescio_package.errors.MismatchError):
        servers[0].check(queries[0].keys[0])
    assert servers[0].check(queries[1].keys[0]).table == tables[1].params.id


def test_a_file_beside_a_data_folder_is_not_reloaded(tmp_path):
    path = write_words(tmp_path)
    options = ["--party", 0, "--port", 0, "--data", tmp_path / "data"]
    with serving(path, *options) as (process, url, _):
        before = httpx.get(f"{url}/v1/tables/words").json()
        write(path, 1)
        process.send_signal(signal.SIGHUP)
        while "reload was refused" not in (line := process.stderr.readline()):
            assert line
        assert "its data folder counts" in line
        assert httpx.get(f"{url}/v1/tables/words").json() == before


def test_a_table_with_changes_is_not_reloaded(tmp_path):
    path, token = write_words(tmp_path), tmp_path / "token"
    token.write_text("0123456789abcdef")
    options = ["--port", 0, "--admin-token-file", token, "--party"]
    with serving(path, *options, 0) as (process, a, _), serving(path, *options, 1) as (_, b, _):
        with TableAdmin([a, b], "words", [token.read_text()] * 2) as admin:
            params = admin.update([17], np.ones((1, 3), "f4"))
        write(path, 1)
        process.send_signal(signal.SIGHUP)
        while "reload was refused" not in (line := process.stderr.readline()):
            assert line
        assert "has changes that the file lacks" in line
        assert httpx.get(f"{a}/v1/tables/words").json()["id"] == params.id.hex()


def test_a_reload_takes_the_version_of_the_configuration(tmp_path):
    path, config = write_words(tmp_path), tmp_path / "nescio.toml"
    text = 'party = 0\nport = 0\nversion = "{}"\n[[table]]\nfile = "words.npy"\n'
    config.write_text(text.format("2026-11"))
    with serving("--config", config) as (process, url, _):
        config.write_text(text.format("2026-12"))
        write(path, 1)
        process.send_signal(signal.SIGHUP)
        wait_for_id(url, nescio_package.Table(ROWS + 1, version="2026-12").params)


def test_options_that_are_not_read_again_are_named(tmp_path):
    write_words(tmp_path)
    path, table = tmp_path / "c.toml", '[[table]]\nfile = "words.npy"\n'
    path.write_text(f"party = 0\nport = 0\nmax-keys = 50\n{table}")
    with serving("--config", path) as (process, url, _):
        path.write_text(f"party = 0\nport = 0\nmax-keys = 60\ncors = ['https://a.b']\n{table}")
        process.send_signal(signal.SIGHUP)
        lines = [process.stderr.readline() for _ in range(3)]
        assert "reloading" in lines[0]
        assert "cors has changed in the configuration file: it takes effect at" in lines[1]
        assert "max-keys has changed" in lines[2]
        path.write_text("no TOML")
        process.send_signal(signal.SIGHUP)
        lines = [process.stderr.readline() for _ in range(2)]
        assert "a reload was refused: " in lines[1]
        assert "c.toml cannot be read as TOML" in lines[1]
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_signal_during_the_start_is_a_reload_after_it(tmp_path):
    """It would end a process without a handler. Hooks that renew certificates do not wait."""
    path = tmp_path / "words.npy"
    np.save(path, np.zeros((1 << 20, 16), np.uint8))
    command = [sys.executable, "-m", "nescio", "serve", str(path), "--party", "0", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        handled = 0
        while not handled >> (signal.SIGHUP - 1) & 1:  # Linux tells which signals are handled
            status = Path(f"/proc/{process.pid}/status").read_text()
            handled = int(status.split("SigCgt:")[1].split()[0], 16)
        process.send_signal(signal.SIGHUP)
        url = next(line.split()[-1] for line in process.stdout if " on http" in line)
        assert "nescio.serve: reloading" in process.stderr.readline()
        assert httpx.get(f"{url}/healthz").status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
