"""`nescio infer`: a server process and clients as a user runs them."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from commands.conftest import assert_one_sentence, nescio, nescio_here
from commands.infer.processes import INPUTS, PLAN, client, serving
from mpc.plans import near

# ---- the commands --------------------------------------------------------------------------------


def test_from_a_plan_to_an_answer(files, tmp_path):
    store = tmp_path / "client.store"
    with serving(files, tmp_path / "stores") as server:
        found = client(nescio, "prepare", server.address, files, store, "--count", 4)
        assert found.stdout.startswith("4 inferences prepared in "), found.stderr
        labels = ["--labels", files / "labels.txt"]
        inputs = [files / "one.npy", files / "three.npy"]
        found = client(nescio, "ask", server.address, files, store, *inputs, *labels)
        lines = server.stop()
    assert (found.returncode, found.stderr) == (0, "")
    *answers, _, head, agreement, _, _, _, outputs, total, _, left = found.stdout.splitlines()
    assert len(answers) == 4
    best = PLAN.simulate(INPUTS[:1]).outputs[0].argmax()
    name = ["cat", "dog", "ship", "frog"][best]
    assert answers[0].startswith(f"{files / 'one.npy'}: {name} ({name} ")
    assert answers[3].startswith(f"{files / 'three.npy'}[2]: ")
    assert "round trips" in head
    assert agreement.split()[0] == "agreement"
    assert outputs.split()[3] == "1"  # all four run together
    assert total.split()[3] == "3"
    assert left == "0 prepared inferences are left"
    assert lines[0].startswith("client 1: prepared 4, ")
    assert lines[1].startswith("client 2: inferred 4, ")
    assert len(lines) == 2
    assert [path.name for path in (tmp_path / "stores").iterdir()] == ["lock"]


def test_json(server, files, prepared):
    found = client(
        nescio_here, "ask", server.address, files, prepared, files / "three.npy", "--json"
    )
    facts = json.loads(found.stdout)
    outputs = np.array([one["outputs"] for one in facts["answers"]])
    assert near(PLAN, outputs, INPUTS[:3])
    assert [one["class"] for one in facts["answers"]] == outputs.argmax(1).tolist()
    assert {one["phase"]: one["round_trips"] for one in facts["phases"]} == {
        "agreement": 1,
        "store": 0,
        "input": 0,
        "lookups": 1,
        "outputs": 1,
    }
    assert facts["left"] == 0


def test_json_before_an_error_has_the_answers(server, files, prepared):
    """The server refuses to prepare more than 1,000, which the fourth of 6 inputs needs."""
    inputs = [files / "three.npy", files / "three.npy"]
    options = [*inputs, "--json", "--refill", 1001]
    found = client(nescio_here, "ask", server.address, files, prepared, *options)
    assert_one_sentence(found)
    assert "expected at most 1,000" in found.stderr
    facts = json.loads(found.stdout)
    outputs = np.array([one["outputs"] for one in facts["answers"]])
    assert near(PLAN, outputs, INPUTS[:3])
    assert facts["left"] == 0


def test_json_is_empty_without_an_answer(server, files, prepared):
    inputs = [files / "three.npy", files / "three.npy", "--json"]
    found = client(nescio_here, "ask", server.address, files, prepared, *inputs)
    assert (found.returncode, found.stdout) == (1, "")


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_images(server, files, prepared, tmp_path, kind):
    image = pytest.importorskip("PIL.Image")
    pixels = np.full((6, 6, 3), (51, 102, 153), np.uint8)
    path = tmp_path / f"flat.{kind}"
    image.fromarray(pixels).save(path)
    scaling = ["--mean", "0.1,0.2,0.3", "--deviation", "0.5,0.25,0.5"]
    found = client(nescio_here, "ask", server.address, files, prepared, path, *scaling, "--json")
    (answer,) = json.loads(found.stdout)["answers"]
    seen = np.asarray(image.open(path), float)[0, 0] / 255  # a JPEG changes colors a little
    assert np.abs(seen - [0.2, 0.4, 0.6]).max() < 0.02
    scaled = (seen - [0.1, 0.2, 0.3]) / [0.5, 0.25, 0.5]
    inputs = np.broadcast_to(scaled[:, None, None], (1, 3, 6, 6))
    assert near(PLAN, np.array(answer["outputs"]), inputs)


def test_inputs_outside_the_calibration_are_named(server, files, prepared, tmp_path):
    np.save(tmp_path / "large.npy", INPUTS[0] * 50)
    found = client(nescio_here, "ask", server.address, files, prepared, tmp_path / "large.npy")
    assert found.returncode == 0
    cut = PLAN.public.count_cut(INPUTS[:1] * 50)
    assert f"large.npy: {cut} numbers are larger" in found.stderr
    assert "the outputs may be wrong" in found.stderr


def test_outputs_larger_than_those_of_the_calibration_are_named(server, files, prepared):
    found = client(nescio_here, "ask", server.address, files, prepared, files / "one.npy")
    assert "its outputs are larger" not in found.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nescio.mpc.PublicPlan.has_large", lambda *_: True)
        found = client(nescio_here, "ask", server.address, files, prepared, files / "one.npy")
    assert found.returncode == 0
    assert "one.npy: its outputs are larger than those of the model's calibration" in found.stderr


def test_refilling(server, files, prepared):
    ask = ["ask", server.address, files, prepared, files / "three.npy", "--refill", 4]
    for left, numbers in ((4, ("", ".2")), (5, (".2", ".3"))):  # 3 and 4, then 4 and 4
        found = client(nescio_here, *ask)
        assert found.returncode == 0, found.stderr
        assert found.stdout.endswith(f"\n{left} prepared inferences are left\n")
        names = {path.name for path in prepared.parent.iterdir()}
        assert names == {f"client.store{number}" for number in numbers}


def test_two_clients_at_once(server, files, tmp_path):
    command = [sys.executable, "-m", "nescio", "infer"]
    common = ["--public", files / "public", "--threads", 1]

    def both(what, *rest):
        running = [
            subprocess.Popen(
                [*map(str, [*command, what, server.address, *rest, *common, "--store", store])],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for store in (tmp_path / "0.store", tmp_path / "1.store")
        ]
        for one in running:
            out, errors = one.communicate(timeout=60)
            assert one.returncode == 0, errors
            yield out

    assert all("20 inferences prepared" in out for out in both("prepare", "--count", 20))
    for out in both("ask", files / "three.npy", "--json"):
        facts = json.loads(out)
        assert facts["left"] == 17
        assert near(PLAN, np.array([one["outputs"] for one in facts["answers"]]), INPUTS[:3])


def test_tls(files, certificate, stranger, tmp_path):
    cert, key = certificate
    store = tmp_path / "client.store"
    tls = ["--tls-cert", cert, "--tls-key", key]
    with serving(files, tmp_path / "stores", *tls) as server:
        prepare = ["prepare", server.address, files, store, "--count", 1]
        found = client(nescio_here, *prepare, "--tls-ca", stranger[0])
        assert_one_sentence(found)
        assert "certificate is not trusted" in found.stderr
        found = client(nescio_here, *prepare, "--timeout", 5)
        assert_one_sentence(found)
        found = client(nescio_here, *prepare, "--tls-ca", cert)
        assert found.returncode == 0, found.stderr
        found = client(
            nescio_here, "ask", server.address, files, store, files / "one.npy", "--tls-ca", cert
        )
        assert found.returncode == 0, found.stderr
        server.stop(signal.SIGINT)


# ---- ends ----------------------------------------------------------------------------------------


def test_processes_that_are_killed(files, tmp_path):
    """The server between prepare and ask, the client in the middle of inferences."""
    store, stores = tmp_path / "client.store", tmp_path / "stores"
    with serving(files, stores) as server:
        found = client(nescio_here, "prepare", server.address, files, store, "--count", 250)
        assert found.returncode == 0, found.stderr
        server.process.kill()
    np.save(tmp_path / "many.npy", np.concatenate([INPUTS] * 6))
    with serving(files, stores) as server:
        command = [sys.executable, "-m", "nescio", "infer", "ask", server.address]
        command += [tmp_path / "many.npy", "--public", files / "public", "--store", store]
        command += ["--batch", "7"]
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
        first = process.stdout.readline()
        process.kill()
        more = process.communicate(timeout=20)[0]
        found = client(nescio, "ask", server.address, files, store, files / "one.npy", "--json")
        assert found.returncode == 0, found.stderr
        facts = json.loads(found.stdout)
        lines = server.stop()
    assert "many.npy[0]: " in first
    seen = 1 + more.count("many.npy[")
    lost = 250 - 1 - facts["left"] - seen
    assert 0 <= lost <= 2 * 7  # a batch that was begun, another not printed
    assert near(PLAN, np.array([facts["answers"][0]["outputs"]]), INPUTS[:1])
    assert len(lines) == 2


# A shell that starts the tests in the background makes them ignore SIGINT; the command must not.
INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from nescio.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_preparation_that_is_interrupted(server, files, tmp_path):
    store = tmp_path / "client.store"
    command = [sys.executable, "-c", INTERRUPTIBLE, "infer", "prepare", server.address]
    command += ["--public", files / "public", "--store", store, "--count", 1000]
    process = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 20
    while not [*tmp_path.iterdir()] and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (130, "nescio: interrupted\n")
    assert [*tmp_path.iterdir()] == []
