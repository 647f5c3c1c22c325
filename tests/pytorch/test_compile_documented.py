"""The page on private inference lists the operators that `compile` takes, and no others."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from nescio.mpc._compile._functions import FUNCTIONS, NUMERIC
from nescio.mpc._compile._operators import OPERATORS
from nescio.mpc._compile._read import ALIASES
from nescio.mpc._compile._refused import REFUSED

PAGE = Path(__file__).parents[2] / "docs" / "private-inference.md"
VARIANTS = {  # names of the graph, of operators that are listed by another name
    *("convolution", "_unsafe_view", "_adaptive_avg_pool2d", "max_pool2d_with_indices"),
    *("max_pool1d_with_indices", "_native_batch_norm_legit_no_training", "_to_copy"),
    *("alias", "lift_fresh_copy", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"),
    "native_dropout",
}


def section():
    return PAGE.read_text().split("## What compile takes")[1].split("\n## ")[0]


def test_the_table_has_what_is_taken():
    rows = [line.split("|")[2] for line in section().splitlines() if line.startswith("| ")]
    listed = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert listed == (OPERATORS.keys() | FUNCTIONS | NUMERIC | ALIASES) - VARIANTS


def test_what_is_refused_by_name_is_refused():
    said = section().split("Refused by name")[1].split("All\nother")[0]
    names = set(re.findall(r"`(\w+)`", said))
    assert len(names) > 10
    assert names <= REFUSED.keys()
