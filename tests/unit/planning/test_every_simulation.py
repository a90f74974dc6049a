"""`best` against every plan wherever its stages stand, all of them simulated: none is much faster.
`tests/benchmarks/bench_every_placement.py` has more cases."""

from itertools import product

import pytest
from drawn import drawn
from every_simulation import SHARING, simulated

NUMBERS = (0, 3, 4, 8, 12, 27, 31)
"""Cases that each were beaten once by another number of devices, another order of unequal ones,
other layers, or replicas that hand microbatches to other machines."""


@pytest.mark.parametrize("kind", ["2 levels", "unequal devices"])
def test_nothing_is_much_faster_than_best(kind):
    drawn_cases = ((n, drawn(kind, n, limited)) for n, limited in product(NUMBERS, (False, True)))
    found = [beside for number, case in drawn_cases if (beside := simulated(case, number))]
    assert len(found) > len(NUMBERS)
    assert not any(beside.is_beyond for beside in found)
    assert max(beside.times for beside in found) <= 1.01


@pytest.mark.parametrize(
    ("kind", "number", "limited"),
    [
        ("2 levels", 90, True),  # all stages copied at once
        ("2 levels", 95, False),  # a layer that waits for none split off in front
        ("2 levels", 168, True),  # a second step from a slower plan
        ("2 levels", 244, True),  # two layers exchanged
        ("2 levels", 245, True),  # a cut and its devices at once
        ("2 levels", 116, True),  # three changes at once
        ("2 levels", 314, True),
        ("2 levels", 292, False),  # replicas that take turns otherwise
        ("unequal devices", 42, True),
        ("unequal devices", 89, True),
        ("unequal devices", 290, False),
        ("unequal devices", 391, False),
    ],
)
def test_what_needs_two_changes_at_once_is_found(kind, number, limited):
    """Each had a plan that was up to 1.7 times as fast."""
    beside = simulated(drawn(kind, number, limited), number)
    assert beside is not None
    assert beside.times <= 1.01


@pytest.mark.parametrize("limited", [False, True])
def test_with_any_shares_nothing_is_much_faster_than_best(limited):
    """Every way to share a batch among the replicas of each stage is simulated."""
    drawn_cases = ((n, drawn("unequal devices", n, limited)) for n in range(6))
    found = [each for n, case in drawn_cases if (each := simulated(case, n, SHARING))]
    assert len(found) >= 4
    assert not any(beside.is_beyond for beside in found)
    assert max(beside.times for beside in found) <= 1.05
