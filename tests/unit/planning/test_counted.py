"""What reaches a cut, and what replicas hold, for several stages at once: as one by one."""

from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backend.planning.pipedream.counted import FewestBehind
from backend.planning.replica_bounds import Bounds

ways = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6)), min_size=1, max_size=30)


@given(ways, st.lists(st.integers(1, 7), min_size=5, max_size=5))
def test_of_ways_to_one_cut_the_first_with_the_fewest_devices_behind_stays(found, before):
    alone, together = (FewestBehind(np.array([before], dtype=float).T) for _ in range(2))
    for step, (at, behind) in enumerate(found):
        alone.note(np.array([at]), np.array([float(behind)]), step)
    at, behind = np.array(found).T
    together.note(at, behind.astype(float), np.arange(len(found)))
    assert (alone.fewest == together.fewest).all()
    assert (alone.origin == together.origin).all()
    least = [min([b for a, b in found if a == n] + [before[n]]) for n in range(5)]
    assert together.fewest[:, 0].tolist() == least


def test_nothing_that_is_out_of_reach_is_kept():
    reached = FewestBehind(np.full((3, 1), inf))
    reached.note(np.array([0, 1]), np.array([inf, 4.0]), np.array([7, 8]))
    assert reached.origin[:, 0].tolist() == [-1, 8, -1]


def test_bounds_of_several_stages_have_a_row_each_with_the_last_entry_again():
    one = Bounds(np.array([1.0]), np.array([4.0]), np.array([3.0]))
    other = Bounds(np.array([1.0, 2.0, 5.0]), np.array([6.0, 3.0, 1.0]), np.array([9.0, 8.0, 7.0]))
    found = Bounds.of([one, other])
    assert found.replicas.tolist() == [[1, 1, 1], [1, 2, 5]]
    assert found.in_flight.tolist() == [[4, 4, 4], [6, 3, 1]]
    assert found.copies.tolist() == [[3, 3, 3], [9, 8, 7]]
