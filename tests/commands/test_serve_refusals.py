"""What `nescio serve` refuses at its start: files, options, command lines."""

import os

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio_here


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        (b"", "is not a NumPy array file"),
        (b"1,2,3\n", "is not a NumPy array file"),
        (b"\x93NUMPY\x01\x00\x06\x00{'a':\n", "is not a NumPy array file"),
    ],
)
def test_a_file_that_is_not_a_table(tmp_path, content, message):
    path = tmp_path / "words.npy"
    if content is not None:
        path.write_bytes(content)
    found = nescio_here("serve", path, "--party", 0, "--port", 0)
    assert_one_sentence(found)
    assert message in found.stderr


def test_a_directory_is_not_a_table(tmp_path):
    found = nescio_here("serve", tmp_path, "--party", 0, "--port", 0)
    assert_one_sentence(found)
    assert f"{tmp_path} is a directory, expected the file of a table" in found.stderr


def test_half_a_table_file(table_file):
    table_file.write_bytes(table_file.read_bytes()[:600])
    found = nescio_here("serve", table_file, "--party", 0, "--port", 0)
    assert_one_sentence(found)


def test_a_file_of_objects_or_of_several_arrays(tmp_path):
    objects, several = tmp_path / "objects.npy", tmp_path / "several.npz"
    np.save(objects, np.array([{}, 1], dtype=object), allow_pickle=True)
    np.savez(several, a=np.zeros(3), b=np.zeros(3))
    for path in (objects, several):
        assert_one_sentence(nescio_here("serve", path, "--party", 0, "--port", 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "expected 0 to 65535"),
        (["--tls-cert", "nowhere.pem"], "both a certificate and its key"),
        (["--tls-cert", "a.pem", "--tls-key", "b.pem"], "a.pem does not exist, expected a PEM"),
        (["--tls-cert", "/", "--tls-key", "b.pem"], "/ is a directory, expected a PEM file"),
        (["--name", "a", "--name", "b"], "found 2 names for 1 tables"),
        (["--threads", "-1"], "threads: found -1"),
        (["--max-keys", "0"], "max_keys: found 0"),
        (["--host", "no.such.host.invalid"], "cannot listen on"),
    ],
)
def test_invalid_options(table_file, options, message):
    found = nescio_here("serve", table_file, "--party", 0, "--port", 0, *options)
    assert_one_sentence(found)
    assert message in found.stderr


def test_an_empty_name_of_the_data_folder(table_file):
    """It is not the current folder."""
    found = nescio_here("serve", table_file, "--party", 0, "--port", 0, "--data", "")
    assert found.returncode == 2
    assert found.stderr.endswith("--data: found an empty name, expected a folder\n")


def test_files_that_are_no_certificate(table_file, tmp_path):
    bad = tmp_path / "bad.pem"
    bad.write_text("not a certificate")
    tls = ["--tls-cert", bad, "--tls-key", bad]
    assert_one_sentence(nescio_here("serve", table_file, "--party", 0, "--port", 0, *tls))


@pytest.mark.parametrize("arguments", [[], ["serve"], ["serve", "x.npy"], ["no-such-command"]])
def test_an_invalid_command_line(arguments):
    found = nescio_here(*arguments)
    assert found.returncode == 2
    assert found.stderr.startswith("usage: nescio")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--threads", 99_999_999_999], "threads: found 99999999999"),
        (["--admin-token-file", os.devnull], "is not a regular file"),
        (["--admin-token-file", "/no/such/file"], "/no/such/file does not exist"),
        (["--admin-token-file", __file__], "at least 16 printable"),
        (["--batch-window", "nan"], "batch_window: found nan"),
        (["--max-answer", 10], "no request fits"),
        (["--name", "a/b"], "a table's name has"),
        (["--host", "\udcff"], "host: found"),
    ],
)
def test_options_that_do_not_fit(table_file, arguments, words):
    found = nescio_here("serve", table_file, "--party", 0, "--port", 0, *arguments)
    assert_one_sentence(found)
    assert words in found.stderr
