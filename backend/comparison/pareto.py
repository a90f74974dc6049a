"""Plans that are worth a choice: faster, of less energy or cheaper than every other."""

from collections.abc import Sequence

from backend.prediction.answer import Answer

Measures = tuple[float, ...]


def pareto(answers: Sequence[Answer]) -> list[bool]:
    """Of each whether no other is at least as good in seconds, joules and money of a sample and
    better in one of them (Pareto). What is not known of one of the answers counts for none."""
    measures = _measures(answers)
    return [not any(_beats(other, mine) for other in measures) for mine in measures]


def _measures(answers: Sequence[Answer]) -> list[Measures]:
    columns: list[list[float | None]] = [
        [answer.seconds_per_sample for answer in answers],
        [answer.energy.joules if answer.energy else None for answer in answers],
        [answer.money for answer in answers],
    ]
    known = [[each for each in column if each is not None] for column in columns]
    return list(zip(*(column for column in known if len(column) == len(answers)), strict=True))


def _beats(other: Measures, mine: Measures) -> bool:
    pairs = zip(other, mine, strict=True)
    return other != mine and all(one <= own for one, own in pairs)
