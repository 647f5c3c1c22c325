"""The files of deploy/: the unit, the container, the two parties, the dashboard, the alerts."""

import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import nescio
from nescio.service import create_app
from nescio.service._observe._peer import Peer

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def metric_names():
    """All names that the service's samples can have."""
    table = nescio.Table([[1.0]])
    servers = {"words": nescio.Server(table, threads=1, party=0)}
    app = create_app(servers, party=0)
    metrics = app.state.metrics
    metrics.measure_machine(list(servers.values()))
    Peer("https://b.example.org", ["words"], servers).observe(metrics, app.state.readiness)
    text = generate_latest(metrics.registry).decode()
    names = set()
    for family in text_string_to_metric_families(text):
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
        names |= {family.name + suffix for suffix in suffixes.get(family.type, [""])}
    assert "nescio_requests_total" in names
    return names


def used_names(expr):
    return set(re.findall(r"\b(?:nescio|process)_[a-z_]+\b", expr))


def expressions():
    """Yields all expressions of the dashboard and of the page for operators."""
    board = json.loads((DEPLOY / "grafana" / "nescio.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for line in re.findall(r"`([^`\n]*nescio_[^`\n]*)`", (ROOT / "docs/operating.md").read_text()):
        if not re.fullmatch(r"nescio_[a-z_]*\*?", line):
            yield "docs/operating.md", line


def test_every_expression_names_metrics_that_exist(metric_names):
    found = list(expressions())
    assert len(found) > 20
    for where, expr in found:
        assert used_names(expr) <= metric_names, where
        assert used_names(expr), where
        assert expr.count("(") == expr.count(")"), where


def test_every_metric_of_the_service_is_in_the_dashboard(metric_names):
    shown = set().union(*(used_names(expr) for _, expr in expressions()))
    shown |= {
        f"{name.rsplit('_', 1)[0]}_{end}" for name in shown for end in ("bucket", "sum", "count")
    }
    ours = {name for name in metric_names if name.startswith("nescio_")}
    ours = {name for name in ours if not name.endswith("_created")}  # of prometheus-client
    assert ours - shown - {"nescio_service_info", "nescio_table_rows"} == set()


def test_panels_do_not_overlap():
    board = json.loads((DEPLOY / "grafana" / "nescio.json").read_text())
    taken = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def unit():
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(DEPLOY / "nescio.service")
    return parser["Service"]


def test_the_unit_starts_a_command_that_exists():
    words = unit()["ExecStart"].split()
    assert words[0].endswith("/bin/nescio")
    assert words[1] == "serve"
    help_text = subprocess.run(
        [sys.executable, "-m", "nescio", "serve", "--help"], capture_output=True, text=True
    ).stdout
    assert {word for word in words if word.startswith("--")} <= set(help_text.split())
    assert int(unit()["TimeoutStopSec"]) > 5


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path):
    path = tmp_path / "nescio.service"
    text = (DEPLOY / "nescio.service").read_text()
    path.write_text(text.replace("/opt/nescio/bin/nescio", sys.executable))
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True
    )
    own = [line for line in found.stderr.splitlines() if "nescio" in line]
    assert own == []
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", path],
        capture_output=True,
        text=True,
    )
    assert rated.returncode == 0, rated.stdout[-500:]


def test_the_container_is_not_root_and_checks_its_health():
    text = (DEPLOY / "Containerfile").read_text()
    stages = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert len(stages) == 2
    assert not [stage for stage in stages if stage.endswith(":latest") or ":" not in stage]
    last = text.rpartition("FROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "/healthz" in last
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in source.split())
    entry = json.loads(re.search(r"^ENTRYPOINT (.+)$", last, re.MULTILINE)[1])
    assert entry[:2] == ["nescio", "serve"]


def test_the_two_parties_share_nothing():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    first, second = found["services"]["party0"], found["services"]["party1"]
    for key in ("profiles", "ports", "volumes", "networks"):
        assert not set(first[key]) & set(second[key])
    sources = {v.split(":")[0] for v in first["volumes"]} & {
        v.split(":")[0] for v in second["volumes"]
    }
    assert not sources
    assert "each party runs its own machine" in (DEPLOY / "compose.yaml").read_text()
    assert first["read_only"]
    assert first["cap_drop"] == ["ALL"]
