"""`nescio serve --client-keys` and `nescio admin client-key`."""

import contextlib
import os
import signal
import time

import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here, serving


def new_key(name, *options):
    found = nescio("admin", "client-key", name, *options)
    assert found.returncode == 0, found.stderr
    return [text.split(": ")[1] for text in found.stdout.splitlines()]


def look_up(servers, keys=None):
    env = {**os.environ, **({} if keys is None else {"NESCIO_CLIENT_KEY": keys})}
    options = ["--servers", *servers, "--table", "words", "--retries", 0]
    return nescio("lookup", *options, 7, env=env)


def test_keys_of_clients_and_their_rotation(tmp_path, table_file):
    files = [tmp_path / f"clients-{party}" for party in range(2)]
    keys = []
    for party, file in enumerate(files):
        key, line = new_key(f"alice-{party}", "--keys-per-second", 1000)
        file.write_text(f"{line}\n")
        keys.append(key)
    with contextlib.ExitStack() as stack:
        parties = [
            stack.enter_context(
                serving(table_file, "--party", party, "--port", 0, "--client-keys", file)
            )
            for party, file in enumerate(files)
        ]
        urls = [url for _, url, _ in parties]
        assert look_up(urls, " ".join(keys)).returncode == 0
        refused = look_up(urls)
        assert_one_sentence(refused)
        assert "not_a_client" in refused.stderr
        new, line = new_key("alice-0")
        files[0].write_text(line)
        parties[0][0].send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 20
        while look_up(urls, f"{new} {keys[1]}").returncode:
            assert time.monotonic() < deadline
        assert look_up(urls, " ".join(keys)).returncode == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--anonymous", "refuse"], "found no --client-keys"),
        (["--client-budget", 0], "the budget of clients: found 0"),
        (["--client-keys", "/no/such/file"], "/no/such/file"),
    ],
)
def test_invalid_options(table_file, options, words):
    found = nescio_here("serve", table_file, "--party", 0, "--port", 0, *options)
    assert_one_sentence(found)
    assert words in found.stderr
