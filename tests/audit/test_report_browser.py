"""The report in a real browser: it is drawn, shows its verdict, and loads nothing else."""

import os
import re
import shutil
import subprocess

import pytest

from audit.records import Run
from nescio.audit import Log
from nescio.audit._audit_log import audit_log
from nescio.audit._report.html import as_html

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
BROWSER = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)

pytestmark = pytest.mark.skipif(
    BROWSER is None,
    reason=f"no browser: none of {', '.join(NAMES)} is installed, and CHROMIUM names none",
)


def chromium(folder, *options):
    command = [
        *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--no-first-run", "--disable-background-networking", f"--user-data-dir={folder}/profile"),
        *map(str, options),
    ]
    return subprocess.run(command, capture_output=True, text=True)  # pytest has the time limit


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    run = Run(20, 60, 200)
    log = Log(run.aggregates, 20, run.windows, run.counts, run.participants)
    path = tmp_path_factory.mktemp("report") / "run.audit.html"
    path.write_text(as_html(audit_log(log, source="run.npz")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def opened(page):
    return chromium(page.parent, "--enable-logging=stderr", "--v=0", "--dump-dom", page.as_uri())


def test_the_page_says_its_verdict(opened):
    assert opened.returncode == 0, opened.stderr
    assert re.search(r'<strong id="verdict">broken</strong>', opened.stdout)
    assert opened.stdout.count("<svg") >= 3


def test_the_page_breaks_no_policy_of_its_own(opened):
    assert "Content Security Policy" not in opened.stderr
    assert "CONSOLE" not in opened.stderr


def test_plots_are_drawn(page):
    """The screenshot has the colors of the plots' lines."""
    image = pytest.importorskip("PIL.Image")
    shot = page.parent / "shot.png"
    size = "--window-size=900,3000"
    found = chromium(page.parent, size, f"--screenshot={shot}", page.as_uri())
    assert found.returncode == 0, found.stderr
    with image.open(shot) as picture:
        colours = {c for n, c in picture.convert("RGB").getcolors(1 << 24) if n > 50}
    assert (0x25, 0x63, 0xA8) in colours  # the first line's
    assert (0xB9, 0x1C, 0x1C) in colours  # the verdict's, broken
