"""The best plan at every variation of a question."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from backend.comparison.variations import Axis, Point, Variation
from backend.errors import StageflowError
from backend.prediction.answer import rank
from backend.prediction.question import Question
from backend.prediction.watch import UNWATCHED, PlanningStopped, Watch


def sweep(
    question: Question, wanted: Iterable[Variation], watch: Watch = UNWATCHED
) -> Iterator[Point]:
    """A point per variation, as it is planned; fewer where the watch ends it. Profile, cluster
    and batch are the variation's, all else is the question's."""
    for variation in wanted:
        try:
            changed = replace(
                question,
                profile=variation.profile(question.profile),
                further=tuple(map(variation.profile, question.further)),
                cluster=variation.cluster,
                batch=variation.batch,
            )
            yield Point(variation, rank(changed, watch)[0])
        except PlanningStopped:
            return
        except StageflowError as fault:
            yield Point(variation, None, str(fault))


def along(points: Iterable[Point], axis: Axis) -> list[Point]:
    """The points of one curve, by value."""
    own = [point for point in points if point.variation.axis is axis]
    return sorted(own, key=lambda point: point.variation.value)
