"""Tables of straight pipelines beside every partition there is."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.planning import linear_partition as module
from backend.planning.cost import spans
from backend.planning.linear_partition import linear_partition, stops

SECONDS = st.lists(st.integers(0, 9).map(float), min_size=2, max_size=7)


def cost(combine, stages, cuts, ends):
    """Of the stages that end at `ends`."""
    found, first = None, 0
    for number, stop in enumerate(ends):
        if found is None:
            found = stages[stop, first]
        else:
            found = combine(combine(found, cuts[number - 1][first]), stages[stop, first])
        first = stop
    return float(found)


@pytest.mark.parametrize("combine", [np.add, np.maximum])
@given(seconds=SECONDS, data=st.data(), rows=st.sampled_from([1, 2, 3, 128]))
def test_each_number_of_stages_has_its_cheapest_partition(combine, seconds, data, rows):
    count = len(seconds)
    stages = spans(np.concatenate(([0.0], np.cumsum(seconds))))
    weights = st.lists(st.integers(0, 9).map(float), min_size=count + 1, max_size=count + 1)
    cuts = [np.array(data.draw(weights)) for _ in range(count - 1)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "ROWS", rows)
        table = linear_partition(combine, stages, cuts)
    for depth in range(1, count + 1):
        inner = combinations(range(1, count), depth - 1)
        best = min(cost(combine, stages, cuts, (*ends, count)) for ends in inner)
        assert table[depth - 1][0][-1] == best
        assert cost(combine, stages, cuts, stops(table, depth)) == best


@given(seconds=SECONDS, begun=st.integers(0, 6))
def test_a_table_that_goes_on_is_that_of_all_stages_at_once(seconds, begun):
    stages = spans(np.concatenate(([0.0], np.cumsum(seconds))))
    cuts = [np.zeros(len(stages))] * (len(seconds) - 1)
    first = linear_partition(np.add, stages, cuts[:begun])
    for mine, other in zip(
        linear_partition(np.add, stages, cuts, first),
        linear_partition(np.add, stages, cuts),
        strict=True,
    ):
        assert all(np.array_equal(a, b) for a, b in zip(mine, other, strict=True))


@pytest.mark.parametrize("combine", [np.add, np.maximum])
@given(
    seconds=st.lists(st.integers(0, 9).map(float), min_size=65, max_size=160),
    depth=st.integers(2, 6),
    seed=st.integers(0, 99),
)
def test_of_many_layers_where_a_stage_starts_is_what_looking_everywhere_finds(
    combine, seconds, depth, seed
):
    costs = spans(np.concatenate(([0.0], np.cumsum(seconds)))) ** (2 if combine is np.add else 1)
    cuts = np.random.default_rng(seed).integers(0, 40, (depth - 1, len(costs))).astype(float)
    before = costs[:, 0]
    for number, (best, starts) in enumerate(linear_partition(combine, costs, cuts)[1:]):
        ways = combine(combine(before, cuts[number]), costs)
        assert np.array_equal(best, ways.min(axis=1))
        assert np.array_equal(starts, ways.argmin(axis=1))
        before = best
