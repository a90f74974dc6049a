"""The fastest of some plans, those with the highest bounds simulated first."""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf

from backend.errors import StageflowError
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.prediction.prediction import Prediction
from backend.prediction.simulations import Simulations
from backend.prediction.watch import Watch

SIMILAR = 1e-9
"""Rates that differ by less are equal: then the candidate that was named first is taken."""
Found = tuple[float, int, Prediction]
"""Samples/s, the number of the candidate, and its prediction."""


def fastest(
    name: str,
    simulations: Simulations,
    plans: Iterable[Plan],
    watch: Watch,
    first: Iterable[Plan] = (),
) -> Prediction:
    """The plan with the most simulated samples/s of those that fit, the first one of equals.

    Best first: candidates are simulated in the order of their bounds, until no bound is above
    the best rate found or the work is spent; those of `first` in any case, before the others. What
    does not fit the memory comes again with every way to save some. What late weights do to
    learning is not weighed. Raises `PlanDoesNotFit` and `PlanningStopped`.
    """
    watch.progress(name, 0, 0)
    question, work, bound = simulations.question, simulations.work, simulations.bound
    found: Found | None = None
    fault: StageflowError | None = None
    least, *others = question.savings
    ways, seeds = 1 + len(others), dict.fromkeys(map(least.of, first))
    listed = enumerate(dict.fromkeys(map(least.of, (*seeds, *plans))))
    queue = [(-inf if p in seeds else -bound(p), ways * number, p) for number, p in listed]
    heapify(queue)
    for done in count():
        watch.progress(name, done, done + len(queue))
        if not queue or (found and is_settled(found, *queue[0][:2])) or watch.stop():
            break
        if found and work.is_spent and queue[0][2] not in seeds:
            work.leave_out(f"{done:,} of {done + len(queue):,} candidates were simulated")
            break
        _, number, plan = heappop(queue)
        try:
            prediction = simulations.predicted(plan)
        except PlanDoesNotFit as error:
            fault = fault or error
            if number % ways == 0:
                saved = {each.of(plan): None for each in others}
                for way, other in enumerate(saved, start=1):
                    if other != plan:
                        heappush(queue, (-bound(other), number + way, other))
        except StageflowError as error:
            fault = fault or error
        else:
            found = better(found, (prediction.samples_per_second, number, prediction))
    if found:
        return found[2]
    watch.check()
    raise fault or PlanDoesNotFit("no schedule admits any partition", "Ask for another one.")


def is_settled(found: Found, bound: float, number: int) -> bool:
    """Whether no candidate of that negative bound and number, nor any behind it, is better."""
    rate, first, _ = found
    return -bound < rate * (1 - SIMILAR) or (-bound <= rate * (1 + SIMILAR) and number > first)


def better(old: Found | None, new: Found) -> Found:
    """The one with more samples/s; of equals the candidate that was named first."""
    if old is None or new[0] > old[0] * (1 + SIMILAR):
        return new
    return new if new[0] >= old[0] * (1 - SIMILAR) and new[1] < old[1] else old
