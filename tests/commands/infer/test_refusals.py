"""What the commands of `nescio infer` refuse."""

import socket

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio_here
from commands.infer.processes import client, serving
from mpc.plans import small_plan


def test_what_a_server_refuses(files, tmp_path):
    limits = ["--max-prepared", 2, "--max-bytes", 10_000, "--max-clients", 2]
    other = tmp_path / "other"
    other.mkdir()
    (other / "public").write_bytes(small_plan(size=4)[0].public.to_bytes())
    with serving(files, tmp_path / "stores", *limits) as server:
        for own, count, said in (
            (files, 3, "expected at most 2"),
            (files, 2, "the server's folder of stores"),
            (other, 1, "public file of another model"),
        ):
            found = client(
                nescio_here, "prepare", server.address, own, tmp_path / "s", "--count", count
            )
            assert_one_sentence(found)
            assert said in found.stderr
        taken = nescio_here(
            *("infer", "serve", files / "plan", "--stores", tmp_path / "b"),
            *("--port", server.address.rpartition(":")[2]),
        )
        assert_one_sentence(taken)
        assert "choose another host or port" in taken.stderr
        lines = server.stop()
    assert all("ended by: " in line for line in lines)
    assert [path.name for path in tmp_path.iterdir()].count("s") == 0


def test_a_store_that_is_used_up(server, files, prepared):
    ask = ["ask", server.address, files, prepared]
    found = client(nescio_here, *ask, files / "three.npy", files / "one.npy")
    assert_one_sentence(found)
    assert "found 4 inputs, expected at most 3" in found.stderr
    assert client(nescio_here, *ask, files / "three.npy").returncode == 0
    found = client(nescio_here, *ask, files / "one.npy")
    assert_one_sentence(found)
    assert "prepare more" in found.stderr
    prepare = ["prepare", server.address, files, prepared]
    found = client(nescio_here, *prepare, "--count", 2)
    assert found.returncode == 0, found.stderr
    found = client(nescio_here, *prepare, "--count", 2)
    assert_one_sentence(found)
    assert f"2 prepared inferences are left in it: use them, or prepare more in {prepared}.2" in (
        found.stderr
    )
    assert client(nescio_here, *ask, files / "one.npy").returncode == 0


def test_a_server_says_which_plan_it_has(files, tmp_path):
    """By the number that the error of a client with another plan has."""
    (tmp_path / "public").write_bytes(small_plan(size=4)[0].public.to_bytes())
    with serving(files, tmp_path / "stores") as server:
        found = client(nescio_here, "prepare", server.address, tmp_path, tmp_path / "s")
    assert f"expected {server.plan}: the client has" in found.stderr


def test_a_store_of_another_server(files, prepared, tmp_path):
    with serving(files, tmp_path / "stores") as other:
        found = client(nescio_here, "ask", other.address, files, prepared, files / "one.npy")
    assert_one_sentence(found)
    assert "or made with another server" in found.stderr


def write(folder, name):
    """Writes a file that is no good input, and returns its path."""
    path = folder / name
    if name == "shape.npy":
        np.save(path, np.zeros((3, 6, 7)))
    elif name == "empty.npy":
        np.save(path, np.zeros((0, 3, 6, 6)))
    elif name == "nan.npy":
        np.save(path, np.full((3, 6, 6), np.nan))
    elif name == "text.npy":
        np.save(path, np.array(["a"]))
    elif name == "size.png":
        pytest.importorskip("PIL.Image").new("RGB", (7, 6)).save(path)
    elif name != "missing.npy":
        path.write_bytes(b"nothing")
    return path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.npy", "does not exist"),
        ("broken.npy", "is not a NumPy array file"),
        ("shape.npy", "found an array of shape (3, 6, 7), expected (3, 6, 6)"),
        ("empty.npy", "found an array of shape (0, 3, 6, 6)"),
        ("nan.npy", "not finite"),
        ("text.npy", "expected numbers"),
        ("size.png", "found an image of 7 x 6 pixels, expected 6 x 6"),
        ("broken.png", "is not an image of PNG or JPEG"),
    ],
)
def test_inputs_that_cannot_be(files, tmp_path, name, said):
    """They are refused before anything connects."""
    path = write(tmp_path, name)
    found = client(nescio_here, "ask", "127.0.0.1:9", files, tmp_path / "store", path)
    assert_one_sentence(found)
    assert said in found.stderr


@pytest.mark.parametrize(
    ("what", "changed", "said"),
    [
        ("ask", {}, "does not exist, expected a store"),
        ("ask", {"--public": "one.npy"}, "public plan: found bytes of another kind"),
        ("ask", {"--public": "none"}, "none does not exist"),
        ("ask", {"--labels": "none"}, "none does not exist"),
        ("ask", {"--labels": "labels.txt", "--threads": "-1"}, "threads"),
        ("ask", {"--mean": "0.5"}, "found arrays only"),
        ("ask", {"--store": "public"}, "expected a store of prepared inferences"),
        ("prepare", {"--timeout": "0.3"}, "no connection to 127.0.0.1 port 9"),
        ("prepare", {"--store": "public"}, "exists"),
        ("prepare", {"--count": "0"}, "count: found 0"),
        ("prepare", {"--tls-ca": "one.npy"}, "TLS files"),
        ("prepare", {"--timeout": "-1"}, "timeout"),
        ("serve", {"--port": "99999"}, "port: found 99999"),
        ("serve", {"--max-clients": "0"}, "max_clients: found 0"),
        ("serve", {"--stores": "public"}, "public cannot be used"),
        ("serve", {"--tls-cert": "public"}, "TLS"),
    ],
)
def test_what_cannot_be(files, tmp_path, what, changed, said):
    serves = what == "serve"
    options = (
        {"--stores": tmp_path / "stores", "--port": 0}
        if serves
        else {
            "--public": files / "public",
            "--store": tmp_path / "store",
        }
    )
    for name, value in changed.items():
        options[name] = files / value if (files / value).exists() or value == "none" else value
    first = {"serve": [files / "plan"], "prepare": ["127.0.0.1:9"]}
    own = first.get(what, ["127.0.0.1:9", files / "one.npy"])
    flat = [part for pair in options.items() for part in pair]
    found = nescio_here("infer", what, *own, *flat)
    assert_one_sentence(found)
    assert said in found.stderr


def test_plans_that_cannot_be(files, tmp_path):
    for plan, said in ((files / "public", "expected a file of Plan.save"), ("none", "none does")):
        found = nescio_here("infer", "serve", plan, "--stores", tmp_path / "s", "--port", 0)
        assert_one_sentence(found)
        assert said in found.stderr


@pytest.mark.parametrize("address", ["127.0.0.1", "a:b", ":9760", "a:0", "a:65536", "::1:9760"])
def test_addresses_that_cannot_be(files, address):
    found = client(nescio_here, "prepare", address, files, "store")
    assert found.returncode == 2
    assert "expected HOST:PORT" in found.stderr


def test_labels_of_another_model(files, tmp_path):
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    labels = ["--labels", tmp_path / "labels.txt"]
    found = client(
        nescio_here, "ask", "127.0.0.1:9", files, tmp_path / "s", files / "one.npy", *labels
    )
    assert_one_sentence(found)
    assert "found 2 labels, expected 4: one for each output" in found.stderr


def test_a_server_that_does_not_answer(files, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as one:
        address = f"127.0.0.1:{one.getsockname()[1]}"
    found = client(nescio_here, "prepare", address, files, tmp_path / "store", "--timeout", 2.5)
    first, last = found.stderr.splitlines()
    assert first == f"nescio: no server answers at {address} yet; trying for 2.5 s"
    assert last.startswith("nescio: ")
    assert "check that the other party listens there" in last
    assert found.returncode == 1
