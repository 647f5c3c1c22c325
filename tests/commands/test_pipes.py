"""Named pipes in place of files, whose opening would wait for a writer: refused at once."""

import os
import signal
from pathlib import Path

import httpx
import numpy as np
import pytest

import nescio
from commands.conftest import assert_one_sentence, nescio_here, serving, write_words
from nescio.errors import FileError
from nescio.pir.batch import Layout
from nescio.service._access import ClientKeys, new_client_key

pytestmark = pytest.mark.timeout(120)  # in place of a test that waits for ever


@pytest.fixture
def files(tmp_path, certificate):
    """Writes every file that a server may read; gives their paths by the last part of an option."""
    for source, name in zip(certificate, ("chain.pem", "key.pem"), strict=True):
        (tmp_path / name).write_bytes(Path(source).read_bytes())
    (tmp_path / "clients").write_text(new_client_key("alice")[1])
    (tmp_path / "token").write_text("0123456789abcdef")
    write_words(tmp_path)
    names = ("chain.pem", "key.pem", "clients", "token", "words.npy")
    (tmp_path / "nescio.toml").write_text(
        'party = 0\nport = 0\ntls-cert = "chain.pem"\ntls-key = "key.pem"\nanonymous = "allow"\n'
        'client-keys = "clients"\nadmin-token-file = "token"\n[[table]]\nfile = "words.npy"\n'
    )
    return {name: tmp_path / name for name in (*names, "nescio.toml")}


def make_pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


NAMES = ["chain.pem", "key.pem", "clients", "token", "words.npy", "nescio.toml"]


@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_is_refused_at_the_start(files, name):
    make_pipe(files[name])
    found = nescio_here("serve", "--config", files["nescio.toml"])
    assert_one_sentence(found)
    assert f"{files[name]} is a pipe, expected a regular file: " in found.stderr
    assert "write the content of the pipe to a file" in found.stderr


@pytest.mark.parametrize("option", ["--keys", "--layout", "--peer-ca-cert"])
def test_a_pipe_of_an_option_is_refused_at_the_start(files, tmp_path, option):
    pipe = tmp_path / "pipe"
    make_pipe(pipe)
    peer = ["--peer", "http://127.0.0.1:9"] if option == "--peer-ca-cert" else []
    found = nescio_here("serve", files["words.npy"], "--party", 0, option, pipe, *peer)
    assert_one_sentence(found)
    assert f"{pipe} is a pipe, expected a regular file: " in found.stderr


def test_a_pipe_of_a_shell_is_refused_as_a_token(files):
    """A shell gives `<(command)` a name such as /dev/fd/63: a pipe that can be read only once."""
    reader, writer = os.pipe()
    try:
        os.write(writer, b"0123456789abcdef")
        path = f"/dev/fd/{reader}"
        found = nescio_here("serve", files["words.npy"], "--party", 0, "--admin-token-file", path)
    finally:
        os.close(reader)
        os.close(writer)
    assert_one_sentence(found)
    assert f"{path} is a pipe" in found.stderr
    assert "NESCIO_ADMIN_TOKEN" in found.stderr


def next_refusal(process):
    while "reload was refused" not in (line := process.stderr.readline()):
        assert line
    return line


def test_a_pipe_is_refused_by_a_reload_and_later_reloads_go_on(files):
    with serving("--config", files["nescio.toml"]) as (process, url, _):
        before = httpx.get(f"{url}/v1/tables/words", verify=False).json()
        for name in NAMES:
            if name == "token":  # read at the start only
                continue
            path = files[name]
            content = path.read_bytes()
            make_pipe(path)
            process.send_signal(signal.SIGHUP)
            assert f"{path} is a pipe, expected a regular file: " in next_refusal(process)
            assert httpx.get(f"{url}/v1/tables/words", verify=False).json() == before
            path.unlink()
            path.write_bytes(content)
        files["clients"].write_text(f"{files['clients'].read_text()}\n{new_client_key('bob')[1]}")
        process.send_signal(signal.SIGHUP)
        while "the keys of clients are loaded again: 2" not in (line := process.stderr.readline()):
            assert line


def test_a_pipe_in_place_of_a_token_does_not_stop_a_reload(files):
    with serving("--config", files["nescio.toml"]) as (process, _, __):
        make_pipe(files["token"])
        process.send_signal(signal.SIGHUP)
        while "the certificate is loaded again" not in (line := process.stderr.readline()):
            assert line


READERS = {
    "a stored table": nescio.Table.load,
    "a layout": Layout.load,
    "clients' keys": ClientKeys,
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_refused_by_a_reader(tmp_path, name):
    make_pipe(tmp_path / "pipe")
    with pytest.raises(FileError, match="is a pipe, expected a regular file"):
        READERS[name](tmp_path / "pipe")


def test_a_link_to_a_file_is_read(tmp_path):
    (tmp_path / "link.npy").symlink_to(write_words(tmp_path))
    table = nescio.Table(np.load(tmp_path / "words.npy"))
    table.save(tmp_path / "words.nescio")
    (tmp_path / "link.nescio").symlink_to(tmp_path / "words.nescio")
    assert nescio.Table.load(tmp_path / "link.nescio").params == table.params
