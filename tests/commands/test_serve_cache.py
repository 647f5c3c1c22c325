"""The cache of `nescio serve`, and stored tables."""

import os
import signal

import httpx
import numpy as np
import pytest

import nescio as nescio_package
from commands.conftest import assert_one_sentence, nescio, nescio_here, serving


def test_a_cached_table_is_mapped_at_the_next_start(table_file):
    kept = table_file.with_name("words.npy.nescio")
    options = [table_file, "--party", 0, "--port", 0, "--cache"]
    with serving(*options) as (_, url, _):
        first = httpx.get(f"{url}/v1/tables/words").json()
    stamp = kept.stat().st_mtime_ns
    with serving(*options) as (_, url, _):
        assert httpx.get(f"{url}/v1/tables/words").json() == first
    assert kept.stat().st_mtime_ns == stamp
    with serving(*options, "--version", "2") as (_, url, _):  # made anew for other parameters
        assert httpx.get(f"{url}/v1/tables/words").json()["params"]["version"] == "2"
    np.save(table_file, np.zeros((100, 3), "f4"))  # and for other rows
    with serving(*options) as (_, url, _):
        digest = httpx.get(f"{url}/v1/tables/words").json()["params"]["digest"]
    assert digest == nescio_package.Table(np.zeros((100, 3), "f4")).params.digest
    with serving(kept, "--party", 1, "--port", 0, "--name", "words") as (_, url, lines):
        assert httpx.get(f"{url}/v1/tables/words").json()["params"]["digest"] == digest
        assert f"digest of words: {digest}" in lines  # for `nescio lookup --digest`


def test_a_damaged_cache_is_replaced(table_file):
    kept = table_file.with_name("words.npy.nescio")
    options = [table_file, "--port", 0, "--cache", "--party"]
    kept.write_bytes(b"NESCIOTB and no more")
    with serving(*options, 0):
        sound = kept.read_bytes()
    assert len(sound) > 4096
    flipped = bytearray(sound)
    flipped[-1] ^= 1  # of the rows
    kept.write_bytes(flipped)
    with serving(*options, 0) as (process, first, _), serving(*options, 1) as (_, second, _):
        found = nescio("lookup", "--servers", first, second, "--table", "words", 99)
        assert found.stdout == "99 297.0 298.0 299.0\n"
        assert kept.read_bytes() == sound
        process.send_signal(signal.SIGINT)
        assert "prepared again" in process.communicate(timeout=20)[1]


def test_a_cache_does_not_outlive_its_source(table_file):
    options = [table_file, "--party", 0, "--port", 0, "--cache"]
    with serving(*options):
        pass
    status = table_file.stat()
    changed = np.ones((100, 3), "f4")
    np.save(table_file, changed)  # of the same size, and soon of the same time
    os.utime(table_file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with serving(*options) as (_, url, _):
        digest = httpx.get(f"{url}/v1/tables/words").json()["params"]["digest"]
    assert digest == nescio_package.Table(changed).params.digest


@pytest.mark.parametrize("content", [b"", b"somebody's letters", None])
def test_a_cache_overwrites_nothing_but_stored_tables(table_file, content):
    taken = table_file.with_name("words.npy.nescio")
    taken.mkdir() if content is None else taken.write_bytes(content)
    found = nescio("serve", table_file, "--party", 0, "--port", 0, "--cache")
    assert_one_sentence(found)
    assert f"{taken} is not a Nescio table, and would be overwritten" in found.stderr
    assert taken.is_dir() if content is None else taken.read_bytes() == content


@pytest.mark.parametrize(
    "option", [["--version", "7"], ["--output", "u32"], ["--generator", "aes128"]]
)
def test_a_stored_table_has_fixed_options(table_file, option):
    kept = table_file.with_name("kept")
    nescio_package.Table(np.load(table_file)).save(kept)
    found = nescio_here("serve", kept, "--party", 0, "--port", 0, *option)
    assert_one_sentence(found)
    assert f"it cannot be served with '{option[1]}'" in found.stderr
