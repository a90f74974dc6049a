"""`best`: the fastest plan of all candidates, and of those that small steps from them lead to."""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import chain, count

from backend.errors import StageflowError
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.planning.sharing_out import other_shares
from backend.planning.work import SearchWork
from backend.prediction.best_first import fastest
from backend.prediction.by_bound import ByBound
from backend.prediction.candidates import (
    every_plan,
    head_plans,
    own_plans,
    saving_plans,
    shared_too,
    variations,
)
from backend.prediction.every_placement import every_placement
from backend.prediction.improvement import nearby
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.simulations import STAGE, Simulations
from backend.prediction.watch import Watch

CANDIDATES = 0.5
"""Of the work for the candidates; what they leave is for steps."""
STEP = 1e-4
"""A step that gains a smaller share is not taken."""
STARTS = 8
"""Plans from which steps are taken at first: the fastest of those that were simulated."""
VAIN = 48
"""Plans in a row whose neighbours are no faster than the fastest one, after which it is taken."""
TURNS = 0.5
"""Share of the work that is left for climbs from other plans than the fastest, before what is near
the fastest ones is tried."""
SLOWER = 64
"""Neighbours of a plan from which a second step is taken though they are slower by their bounds."""
NEARLY = 0.1
"""Share of its rate by which another plan may be behind the fastest one and be completed too."""


def best(question: Question, watch: Watch, work: SearchWork) -> list[Prediction]:
    """The fastest plan that is found, with what it will do, in front of the fastest ones of other
    schedules: one that runs ahead or has codecs may be faster then. Raises as `fastest`."""
    simulations = Simulations(question, work.part(CANDIDATES))
    others = (found.plan for found in question.answered.values() if found)
    plans = list(every_plan(question, simulations.work))
    least = question.savings[0].of
    own, ahead = map(least, own_plans(question)), map(least, head_plans(question))
    seeds = (*own, *others, *ahead, *saving_plans(question, work))  # of equals the first is named
    first = (replace(plan, planner="best") for plan in seeds)
    found = fastest("best", simulations, plans, watch, filter(question.admits, first))
    improving = Improving(replace(simulations, work=work), watch, found)
    return [improving.run(), *improving.others()]


Queue = list[tuple[float, int, Iterator[Plan]]]


@dataclass
class Climb:
    """Steps from plan to plan, each faster than the one before, and the work that was done."""

    steps: Iterator[Plan]
    done: float = 0.0


@dataclass
class Improving:
    """Steps from the fastest plans that were simulated, and from those that they lead to, the
    fastest first.

    best   the fastest plan so far
    queue  plans by their rates, each with the neighbours that are left, the highest bound first
    unfit  plans that do not fit the memory by their bounds, likewise: a neighbour may fit
    slower plans that are no faster by their bounds, likewise: two steps at once may help where
           either alone does not
    """

    simulations: Simulations
    watch: Watch
    best: Prediction
    queue: Queue = field(default_factory=list)
    unfit: Queue = field(default_factory=list)
    slower: Queue = field(default_factory=list)
    _tried: set[Plan] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=count)

    def run(self) -> Prediction:
        """`best`, or a faster plan. Ends where no step helps, where the work is spent, or when it
        is stopped."""
        first, *others = self._starts()
        self._climb(first)
        climbs = [Climb(self._steps_up(start)) for start in others]
        self._in_turns(climbs, TURNS)
        self._everywhere()
        for found in self._fastest_partitions()[:STARTS]:
            self._push(found)
        before = None
        while before is not self.best:
            before = self.best
            self._expand(self.queue)
            self._expand(self.unfit)
            self._expand_slower()
            self._in_turns(climbs)
        return self.best

    def others(self) -> list[Prediction]:
        """Of each other schedule the fastest plan that is nearly as fast as the best."""
        found = {self.best.plan.schedule: self.best}
        least = (1 - NEARLY) * self.best.samples_per_second
        for each in self.simulations.fastest:
            if each.samples_per_second >= least:
                found.setdefault(each.plan.schedule, each)
        return list(found.values())[1:]

    def _in_turns(self, climbs: list[Climb], share: float = 1.0) -> None:
        """Go on with `climbs` until all have come to their ends or that share of the work that is
        left is done; always with the one that has done least."""
        work = self.simulations.work
        until = work.done + share * work.left
        while climbs and work.done < until and not self._is_over():
            climb = min(climbs, key=lambda each: each.done)
            before = work.done
            if next(climb.steps, None) is None:
                climbs.remove(climb)
            climb.done += work.done - before

    def _everywhere(self) -> None:
        """The best with its stages anywhere, and its batch shared in any way, where there are few
        ways."""
        question, plan = self.simulations.question, self.best.plan
        if plan.partition.chunks > 1 or plan.num_pipelines > 1:
            return
        partitions = every_placement(question.profile, question.cluster)
        found = (replace(plan, partition=each) for each in partitions)
        steps = self._above(chain.from_iterable(self._and_shared(each) for each in found))
        while self._faster(steps):
            pass

    def _and_shared(self, plan: Plan) -> Iterator[Plan]:
        """A plan, and the same with its batch shared otherwise."""
        yield plan
        yield from other_shares(plan, self.simulations.question.cluster)

    def _expand_slower(self) -> None:
        """The same of plans that are slower: there is always one more, so that nothing is said to
        be left out."""
        told = self.simulations
        self.simulations = replace(told, work=told.work.untold())
        self._expand(self.slower)
        self.simulations = told

    def _expand(self, queue: Queue) -> None:
        """The neighbours of the plans in `queue`, and of those that are added meanwhile, until
        those of `VAIN` in a row are no faster."""
        vain = 0
        while queue and vain < VAIN and not self._is_over():
            rate, number, steps = heappop(queue)
            if self._faster(steps):
                vain = 0
                heappush(queue, (rate, number, steps))
                self._climb(self.best)
            else:
                vain += 1

    def _starts(self) -> list[Prediction]:
        """The best, and the fastest plans of other numbers of stages or other schedules."""
        found: dict[object, Prediction] = {}
        for each in (self.best, *self.simulations.fastest):
            found.setdefault(len(each.plan.partition.stages), each)
            found.setdefault(each.plan.schedule, each)
        return list(dict.fromkeys(found.values()))[:STARTS]

    def _fastest_partitions(self) -> list[Prediction]:
        """Of each partition that was simulated the fastest plan, the fastest partition first."""
        found: dict[object, Prediction] = {}
        for each in self.simulations.fastest:
            found.setdefault(each.plan.partition, each)
        return list(found.values())

    def _climb(self, start: Prediction) -> None:
        """From plan to plan, each faster than the one before."""
        for _ in self._steps_up(start):
            pass

    def _steps_up(self, current: Prediction) -> Iterator[Plan]:
        """The same step by step, those in vain too."""
        is_better = True
        while is_better:
            is_better = False
            for plan in self._steps(current.plan):
                if self._is_over():
                    break
                found = self._tried_once(plan)
                if found and found.samples_per_second > current.samples_per_second * (1 + STEP):
                    current, is_better = found, True
                yield plan
                if is_better:
                    break

    def _push(self, found: Prediction) -> None:
        self._tried.add(replace(found.plan, planner="best"))
        steps = self._steps(replace(found.plan, planner="best"))
        heappush(self.queue, (-found.samples_per_second, next(self._numbers), steps))

    def _is_over(self) -> bool:
        return self.simulations.work.is_spent or self.watch.stop()

    def _faster(self, steps: Iterator[Plan]) -> bool:
        """Whether one of `steps` is faster than the best; then it is the best."""
        for plan in steps:
            if self._is_over():
                return False
            is_last = self.best
            if found := self._tried_once(plan):
                self._push(found)
            if self.best is not is_last:
                return True
        return False

    def _tried_once(self, plan: Plan) -> Prediction | None:
        """What `plan` does, where it was not tried before and fits; the best where it is."""
        if plan in self._tried or self.simulations.is_in_vain(plan):
            return None
        self._tried.add(plan)
        try:
            found = self.simulations.predicted(plan)
        except PlanDoesNotFit:
            heappush(
                self.unfit, (-self.simulations.bound(plan), next(self._numbers), self._steps(plan))
            )
            return None
        except StageflowError:
            return None
        if found.samples_per_second > self._enough:
            self.best = found
        return found

    @property
    def _enough(self) -> float:
        return self.best.samples_per_second * (1 + STEP)

    def _steps(self, plan: Plan) -> Iterator[Plan]:
        """The neighbours of `plan` that may be faster than the best, the highest bound first, as
        far as the work suffices."""
        question = self.simulations.question
        near = nearby(plan, question.profile, question.cluster)
        shared = chain.from_iterable(shared_too(question, other) for other in near)
        moved = other_shares(plan, question.cluster)
        found = yield from self._above(chain(variations(question, plan), moved, shared))
        for bound, other in found.rest(SLOWER):
            self._tried.add(other)
            heappush(self.slower, (-bound, next(self._numbers), self._steps(other)))

    def _above(self, plans: Iterable[Plan]) -> Generator[Plan, None, ByBound]:
        """Those of `plans` likewise; returns the others."""
        question, work = self.simulations.question, self.simulations.work
        found = ByBound(self.simulations)
        for number, plan in enumerate(plans):
            work.count(STAGE * len(plan.partition.stages) / 4 + plan.partition.num_devices / 8)
            if work.is_spent:
                break
            if plan not in self._tried and question.admits(plan):
                found.push(number, plan)
        while found.above(self._enough):
            yield found.pop()[1]
        return found
