"""The fastest of some plans, those with the highest bounds simulated first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from backend.errors import StageflowError
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.planning.savings import Savings
from backend.prediction.by_bound import ByBound
from backend.prediction.candidates import halved
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
    the best rate found or the work is spent; before them those of `first`, as they save memory.
    What does not fit the memory comes again with every way to save some. What late weights do to
    learning is not weighed. Raises `PlanDoesNotFit` and `PlanningStopped`.
    """
    watch.progress(name, 0, 0)
    least, *others = simulations.question.savings
    race = Race(simulations, 1 + len(others), others, ByBound(simulations))
    race.enter(dict.fromkeys(first))
    race.begin()
    race.shrinks = False
    race.enter(dict.fromkeys(map(least.of, plans)))
    for done in count():
        watch.progress(name, done, done + len(race.queue))
        if race.is_over() or watch.stop():
            break
        race.run(*race.queue.pop())
    if race.found:
        return race.found[2]
    watch.check()
    raise race.fault or PlanDoesNotFit("no schedule admits any partition", "Ask for another one.")


@dataclass
class Race:
    """Plans by their bounds and their numbers, those that were simulated left out.

    ways    numbers that a plan takes: its own, and one for each way of `others` to save memory
    shrinks whether what does not fit is entered in smaller microbatches too
    found   the best so far
    fault   why the first one that does not fit or run does not
    """

    simulations: Simulations
    ways: int
    others: Sequence[Savings]
    queue: ByBound
    shrinks: bool = True
    found: Found | None = None
    fault: StageflowError | None = None
    _entered: int = 0

    def next_number(self) -> int:
        self._entered += 1
        return self.ways * (self._entered - 1)

    def enter(self, plans: Iterable[Plan]) -> None:
        for plan in plans:
            self.queue.push(self.next_number(), plan)

    def is_settled(self) -> bool:
        """Whether no plan that is left is better."""
        if not self.queue:
            return True
        if self.found is None:
            return False
        least = self.found[0] * (1 - SIMILAR)
        return not self.queue.above(least) or is_settled(self.found, *self.queue.first(least))

    def begin(self) -> None:
        """Simulate what is queued and may be the best, and what costs little: steps may lead
        further from there. Once all work is spent, that of steps too, only what other planners
        answered, which costs nothing any more."""
        while self.queue:
            is_settled = self.is_settled()
            number, plan = self.queue.pop()
            if self.found and self.simulations.work.is_whole_spent:
                is_settled = not self.simulations.is_answered(plan)
            if not is_settled or self.simulations.is_cheap(plan):
                self.run(number, plan)

    def is_over(self) -> bool:
        """Whether no plan that is left is better, or the work is spent."""
        if self.is_settled():
            return True
        work = self.simulations.work
        if self.found and work.is_spent:
            done = len(self.simulations.found)
            work.leave_out(f"{done:,} of {done + len(self.queue):,} candidates were simulated")
            return True
        return False

    def run(self, number: int, plan: Plan) -> None:
        """Simulate `plan`; enter it with every way to save memory where it does not fit."""
        if self.simulations.is_in_vain(plan):
            return
        try:
            prediction = self.simulations.predicted(plan)
        except PlanDoesNotFit as error:
            self.fault = self.fault or error
            if number % self.ways == 0:
                self._enter_saved(number, plan)
        except StageflowError as error:
            self.fault = self.fault or error
        else:
            self.found = better(self.found, (prediction.samples_per_second, number, prediction))

    def _enter_saved(self, number: int, plan: Plan) -> None:
        saved = {each.of(plan): None for each in self.others}
        for way, other in enumerate(saved, start=1):
            if other != plan:
                self.queue.push(number + way, other)
        admits = self.simulations.question.admits
        for other in filter(admits, halved(plan)) if self.shrinks else ():
            self.queue.push(self.next_number(), other)


def is_settled(found: Found, bound: float, number: int) -> bool:
    """Whether no candidate of that bound and number, nor any behind it, is better."""
    rate, first, _ = found
    return bound < rate * (1 - SIMILAR) or (bound <= rate * (1 + SIMILAR) and number > first)


def better(old: Found | None, new: Found) -> Found:
    """The one with more samples/s; of equals the candidate that was named first."""
    if old is None or new[0] > old[0] * (1 + SIMILAR):
        return new
    return new if new[0] >= old[0] * (1 - SIMILAR) and new[1] < old[1] else old
