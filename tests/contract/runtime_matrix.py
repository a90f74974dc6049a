"""Every pair of what the runtime combines, in as few training runs as a greedy choice finds.

A covering design of strength 2 (Cohen et al., The AETG System, IEEE Transactions on Software
Engineering 23:7, 1997): each two values that go together at all meet in some run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

Row = dict[str, Any]
Pair = tuple[tuple[str, Any], tuple[str, Any]]


def covering(factors: Mapping[str, Sequence[Any]], fits: Callable[[Row], bool]) -> list[Row]:
    """Rows in which every pair of values meets that meets in any row that `fits`."""
    rows: list[Row] = []
    seen: set[Pair] = set()
    for wanted in _pairs(factors):
        if wanted not in seen:
            row = _extended(dict(wanted), factors, seen, fits)
            if row is not None:
                rows.append(row)
                seen |= set(_pairs_of(row))
    return rows


def _extended(
    row: Row, factors: Mapping[str, Sequence[Any]], seen: set[Pair], fits: Callable[[Row], bool]
) -> Row | None:
    """A whole row with these values: of each further factor the value that meets the most
    others for the first time, and another one where that leads nowhere."""
    missing = next((name for name in factors if name not in row), None)
    if missing is None:
        return row if fits(row) else None
    known = list(row.items())
    turn = len(seen) % len(factors[missing])
    values = [*factors[missing][turn:], *factors[missing][:turn]]
    values.sort(key=lambda v: sum(_pair(item, (missing, v)) in seen for item in known))
    for value in values:
        if fits(row | {missing: value}):
            found = _extended(row | {missing: value}, factors, seen, fits)
            if found is not None:
                return found
    return None


def _pairs(factors: Mapping[str, Sequence[Any]]) -> Iterator[Pair]:
    for one, other in combinations(factors, 2):
        for a in factors[one]:
            for b in factors[other]:
                yield _pair((one, a), (other, b))


def _pairs_of(row: Row) -> Iterator[Pair]:
    for one, other in combinations(row.items(), 2):
        yield _pair(one, other)


def _pair(one: tuple[str, Any], other: tuple[str, Any]) -> Pair:
    return (one, other) if one[0] < other[0] else (other, one)
