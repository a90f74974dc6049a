"""The median stopping rule of Google Vizier (Golovin et al., KDD 2017, section 3.2.1)."""

from collections.abc import Sequence
from statistics import fmean, median

FEWEST = 3
"""Runs that must be done: a median of fewer says little."""


def falls_behind(
    own: Sequence[float], done: Sequence[Sequence[float]], larger: bool, grace: int
) -> str:
    """Why a run ends whose evaluations have said `own` so far; "" where it goes on: its best value
    is worse than the median of the others' means up to as many evaluations. `done` are the values
    of the runs that are done, `larger` says which values are better."""
    others = [values for values in done if values]
    so_far = len(own)
    if so_far < max(grace, 1) or len(others) < FEWEST:
        return ""
    middle = median(fmean(values[:so_far]) for values in others)
    best = max(own) if larger else min(own)
    if best == middle or (best > middle) == larger:
        return ""
    return (
        f"median rule: after {so_far} evaluations its best is {best:.4g}, "
        f"the median of {len(others)} runs {middle:.4g}"
    )
