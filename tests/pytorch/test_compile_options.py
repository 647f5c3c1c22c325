"""Options of operators: each is computed as PyTorch does; none is ignored."""

import pytest

from pytorch.networks import F, nn, torch
from pytorch.test_compile_operators import check, conv


@pytest.mark.parametrize(
    ("function", "tables"),
    [
        (lambda x: torch.div(x, 0.5, rounding_mode="floor"), 192),
        (lambda x: torch.div(x, 0.7, rounding_mode="trunc"), 192),
        (lambda x: x.div(0.7, rounding_mode=None), 0),
        (lambda x: x // 1, 192),
        (lambda x: x % 0.7, 192),
        (lambda x: torch.fmod(x, 0.7), 192),
        (lambda x: torch.round(x, decimals=1), 192),
        (lambda x: torch.div(F.relu(x), 0.5, rounding_mode="floor"), 192),
    ],
)
def test_quotients_with_a_rounding_are_functions(function, tables):
    check(function, tables=tables)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, m: torch.add(x, m(x), alpha=-2.5),
        lambda x, m: torch.sub(x, m(x), alpha=3),
        lambda x, m: torch.rsub(x, m(x), alpha=3),
        lambda x, m: torch.rsub(x, 2.0, 3) + torch.add(m(x), 2.0, alpha=3),
        lambda x, m: torch.sub(torch.ones(3, 8, 8), m(x), alpha=0.5),
        lambda x, m: torch.addmm(
            m.weight.new_ones(8), x[:, 0, 0], m.weight.new_ones(8, 8), alpha=2
        ),
        lambda x, m: m(x).mean((2, 3), keepdim=True) + m(x).sum(1, keepdim=True),
        lambda x, m: m(x).sum((1, 3)) + m(x).mean(2).sum(1),
        lambda x, m: (
            x.mean(1, dtype=torch.float64) + m(x).to(memory_format=torch.channels_last)[:, 0]
        ),
    ],
)
def test_factors_and_axes(function):
    check(function, conv(3, 3))


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 3, "stride": 2},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True},
        {"kernel_size": 3, "padding": 1, "count_include_pad": False},
        {"kernel_size": (3, 2), "stride": (2, 3), "padding": (1, 0), "count_include_pad": False},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        {"kernel_size": 2, "divisor_override": 3},
        {"kernel_size": 3, "padding": 1, "count_include_pad": False, "divisor_override": 2},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True, "divisor_override": 2},
    ],
)
def test_averages(options):
    check(lambda x: F.avg_pool2d(x, **options))


@pytest.mark.parametrize("includes", [False, True])
def test_averages_in_one_dimension(includes):
    check(lambda x: F.avg_pool1d(x, 3, 2, 1, True, includes), shape=(3, 10))


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_stacks(axis):
    modules = nn.Linear(6, 5), nn.Linear(6, 5)

    def stacked(x, m, n):
        return torch.stack([F.relu(m(x)), n(x), torch.ones(1, 5)], axis)

    check(stacked, *modules, shape=(6,), tables=5)


@pytest.mark.parametrize(
    ("function", "rises"),
    [
        (lambda x: -x.clamp(9, 20), False),
        (lambda x: -torch.round(x * 3), False),
        (lambda x: torch.neg(-x.clamp(-1, 1)), True),
        (lambda x: 2 - 3 * F.hardtanh(x), False),
        (lambda x: 2 - F.hardtanh(x) * -3, True),
        (lambda x: torch.rsub(torch.tanh(x), 1, alpha=-2), True),
        (lambda x: torch.tanh(x) / -4, False),
        (lambda x: torch.minimum(torch.tanh(x), torch.tensor(0.3)), True),
        (lambda x: F.leaky_relu(x, -0.2), False),
        (lambda x: F.leaky_relu(x, 0.2), True),
        (lambda x: F.elu(x, 0.5), True),
        (lambda x: F.elu(x, -0.5), False),
        (F.softplus, True),
        (lambda x: F.softplus(x, 1.0, 0.5), False),
        (lambda x: torch.floor(x * 5), True),
    ],
)
def test_only_functions_that_rise_change_places_with_a_maximum(function, rises):
    """The function then takes a table for each output of the pool, and not for each pixel."""
    tables = 4 * (48 + (16 if rises else 64))
    check(lambda x, m: F.max_pool2d(function(8 * m(x) + 6), 2), conv(), tables=tables)
