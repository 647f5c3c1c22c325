"""Grades, the control, the page and the JSON."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest

from audit.records import Run, short_searches
from nescio.audit import Log, Options, Thresholds
from nescio.audit._audit_log import audit_log
from nescio.audit._certify.control import _rank_sum, shuffled_control
from nescio.audit._certify.quality import measure
from nescio.audit._disaggregate import solve
from nescio.audit._report.charts import Series, bars, lines
from nescio.audit._report.facts import as_json
from nescio.audit._report.html import as_html
from nescio.errors import ArgumentError

NAME = "{http://www.w3.org/2000/svg}"
SVG = f"{NAME}svg"


def record(run, **changes):
    named = {
        "windows": run.windows,
        "counts": run.counts,
        "participants": run.participants,
        **changes,
    }
    return Log(run.aggregates, run.users, **named)


@pytest.fixture(scope="module")
def broken():
    return audit_log(record(Run(20, 60, 200)), source="run <1> & more.npz")


@pytest.fixture(scope="module")
def drowned():
    """Updates with noise of a hundred times their size."""
    with short_searches():
        return audit_log(record(Run(20, 60, 200, noise=100.0)), rows="sums")


def test_a_log_without_noise_is_broken(broken):
    assert (broken.verdict.grade, broken.verdict.code) == ("broken", 2)
    assert broken.verdict.usable == broken.verdict.unique == 20
    assert (broken.quality.errors < 1e-6).all()


def test_a_log_that_is_all_noise_is_safe_if_its_rows_are_known(drowned):
    assert (drowned.verdict.grade, drowned.verdict.code) == ("safe", 0)
    assert drowned.control.probability > 1e-3


def test_thresholds_decide():
    log = record(Run(20, 60, 200))
    lenient = audit_log(log, thresholds=Thresholds(usable=1e-30))
    assert lenient.verdict.grade == "at risk"
    assert lenient.verdict.unique == 20
    assert lenient.verdict.usable == 0


def test_columns_without_certificates_break_a_log_if_chance_gives_no_such():
    """Noise in few directions, as that of SGD: the noise model rejects true columns."""
    run = Run(20, 80, 400)
    rng = np.random.default_rng(0)
    few = rng.standard_normal((3, 400)) * 0.3
    run.aggregates += np.sqrt(run.participants)[:, None] * (rng.standard_normal((80, 3)) @ few)
    log = record(run)
    with short_searches():
        found = audit_log(log, method="reflect")
    assert found.verdict.grade == "broken"
    if found.control is not None:
        assert found.control.probability < 1e-6
        assert found.control.clear.sum() >= 10
        assert run.right(found.result)[found.control.clear].mean() > 0.9


def test_idle_users_break_nothing():
    run = Run(20, 60, 200, noise=100.0)
    counts = np.concatenate([run.counts, np.zeros((2, len(run.windows)), np.int64)])
    log = Log(run.aggregates, 22, run.windows, counts, run.participants)
    with short_searches():
        found = audit_log(log, rows="sums")
    assert found.verdict.users == 20
    assert found.verdict.grade == "safe"


def test_without_counts_there_is_no_control():
    run = Run(6, 60, 200)
    log = Log(run.aggregates, 6)
    assert shuffled_control(log, solve(log)) is None
    json.loads(as_json(audit_log(log)))


def test_the_control_is_even_where_there_is_nothing():
    """Probabilities of several controls without signal are not all small."""
    found = []
    for seed in range(4):
        log = record(Run(10, 30, 40, noise=1000.0, seed=seed))
        with short_searches():
            nothing = solve(log, method="reflect", updates=False)
            found.append(shuffled_control(log, nothing, Options(seed=seed)).probability)
    assert min(found) > 4e-4, "as small as ten users can make it"
    assert max(found) > 0.2


def test_ranks_give_probabilities():
    low, high = np.arange(10.0), np.arange(10.0) + 100
    assert _rank_sum(low, high) == pytest.approx(7.8e-5, rel=0.02)
    assert _rank_sum(low, low) == pytest.approx(0.5)
    assert _rank_sum(high, low) > 0.999


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_errors_of_updates_are_estimated(noise):
    run = Run(20, 100, 2000, noise=noise)
    log = record(run)
    result = solve(log)
    assert run.right(result).all()
    off = np.linalg.norm(result.updates - run.updates, axis=1)
    true = off / np.linalg.norm(run.updates, axis=1)
    quality = measure(log, result)
    assert quality.errors == pytest.approx(true, rel=0.4)
    assert quality.noise == pytest.approx(noise, rel=0.2)


@pytest.mark.parametrize(
    "wrong",
    [{"broken": 1.0}, {"broken": -0.1}, {"broken": float("nan")}, {"usable": 0}, {"chance": 0}],
)
def test_thresholds_that_are_none(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        Thresholds(**wrong)


def test_the_json_is_strict_and_whole(broken):
    found = json.loads(as_json(broken), parse_constant=pytest.fail)
    assert found["verdict"]["grade"] == "broken"
    assert found["verdict"]["exit_code"] == 2
    assert len(found["users"]) == 20
    assert {user["status"] for user in found["users"]} == {"unique"}
    assert found["advice"]
    assert "proves nothing" in found["caution"]


def test_the_json_holds_no_updates_and_no_columns(broken):
    assert len(as_json(broken)) < 20_000


class Strict(HTMLParser):
    """Checks that every tag closes, in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.attributes = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("which", ["broken", "drowned"])
def test_the_page_is_well_formed_and_loads_nothing(which, request):
    page = as_html(request.getfixturevalue(which))
    strict = Strict()
    strict.feed(page)
    strict.close()
    assert strict.open == []
    names = {name for _, name, _ in strict.attributes}
    assert not names & {"src", "href", "srcset", "data", "action"}
    assert all(v.startswith("#") for _, name, v in strict.attributes if name == "xlink:href")
    assert not any(name.startswith("on") for name in names)
    assert "<script" not in page
    assert page.count("url(") == page.count('"url(#')  # parts of the same plot
    ids = [value for _, name, value in strict.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\"' <]*", page)) == namespaces
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_the_page_is_xml_with_plots(broken, drowned):
    for findings in (broken, drowned):
        tree = ET.fromstring(as_html(findings).removeprefix("<!DOCTYPE html>\n"))
        plots = list(tree.iter(SVG))
        assert len(plots) >= 3
        for plot in plots:
            assert plot.attrib["aria-label"]
    said = "".join(tree.itertext())
    assert "safe" in said
    assert "proves nothing" in said


@pytest.mark.parametrize("which", ["broken", "drowned"])
def test_the_report_speaks_of_participation(which, request):
    findings = request.getfixturevalue(which)
    page = ET.fromstring(as_html(findings).removeprefix("<!DOCTYPE html>\n"))
    report = json.loads(as_json(findings))
    said = ["".join(page.find("body").itertext()), *report["verdict"]["reasons"], *report["advice"]]
    said += [user["reason"] for user in report["users"]]
    assert not re.search(r"\b(columns?|span|evened)\b", " ".join(said))


def test_the_caution_stands_where_the_attack_failed(broken, drowned):
    assert "That this attack fails" not in as_html(broken)
    assert "<strong>That this attack fails" in as_html(drowned)


def test_names_from_outside_are_escaped(broken):
    assert "run &lt;1&gt; &amp; more.npz" in as_html(broken)


def test_a_plot_has_its_points_within_it():
    drawn = lines("a < b", [Series("s", [1, 10, 100], [1e-9, None, 0.0])], "x", "y", log_y=True)
    tree = ET.fromstring(drawn)
    assert tree.attrib["aria-label"] == tree[0].text == "a < b"
    _, _, width, height = map(float, tree.attrib["viewBox"].split())
    dots = [use for use in tree.iter(f"{NAME}use") if "#2563a8" in use.get("style")]
    assert len(dots) >= 2
    for dot in dots:
        assert 0 < float(dot.attrib["x"]) < width
        assert 0 < float(dot.attrib["y"]) < height
    said = {"".join(node.itertext()) for node in tree.iter(f"{NAME}text")}
    assert {"x", "y", "s"} <= said


def test_a_plot_is_the_same_each_time():
    series = [Series("s", list(range(9)), list(range(9))), Series("t", [1], [2], dots=True)]
    assert lines("a", series, "x", "y") == lines("a", series, "x", "y")


def test_a_plot_of_many_points_stays_small():
    many = list(range(16384))
    assert len(lines("many", [Series("s", many, many, dots=True)], "x", "y")) < 60_000


@pytest.mark.parametrize(
    "values", [[], [None], [0.0], [5.0, 5.0], [float("inf"), 1.0], [-2.0, 3.0], [1e-300, 1e300]]
)
@pytest.mark.parametrize("log_y", [False, True])
def test_plots_of_anything_are_xml(values, log_y):
    xs = list(range(1, len(values) + 1))
    ET.fromstring(lines("t", [Series("s", xs, values)], "x", "y", log_y=log_y))


def test_a_bar_of_nobody():
    ET.fromstring(bars("nobody", [("a", 0, "#000000"), ("b", 0, "#ffffff")]))
