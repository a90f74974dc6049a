"""The simulations of a search: each counts as work, and none is made that its bound rules out."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import inf

from backend.errors import StageflowError
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.plan import Plan
from backend.planning.work import SearchWork
from backend.prediction.bottleneck import compute_bound, drains, most_samples
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.shapes import steady_shape
from backend.prediction.steady import forwards

PREDICTING, FORWARD, STAGE = 300.0, 8.0, 20.0
"""Work of a prediction: once, per forward that is simulated, and per stage."""
ROUGH, ROUNDED = 4.0, 1e-9
"""Work of a rough bound per stage, and the share by which it is higher than it was worked out."""
CHEAP = 0.01
"""Share of the work that is left, below which a simulation is worth a try."""


@dataclass(frozen=True)
class Simulations:
    """What plans of `question` do, at the cost of `work`: what was simulated before for another
    search costs as much, so that a search ends at the same place whatever was before."""

    question: Question
    work: SearchWork
    found: dict[Plan, Prediction] = field(default_factory=dict)

    def predicted(self, plan: Plan) -> Prediction:
        """`plan` simulated, as far ahead as is asked for. Raises as `Question.predict`."""
        plan = self.question.asked(plan)
        key = replace(plan, planner="")
        if known := self.found.get(key):
            return replace(known, plan=plan)
        self.work.count(PREDICTING + STAGE * len(plan.partition.stages))
        found = self.question.predict(plan)
        if found.is_simulated:
            self.work.count(FORWARD * forwards(plan, steady_shape(plan)))
        self.found[key] = found
        return found

    def is_in_vain(self, plan: Plan) -> bool:
        """Whether `plan` was simulated under a schedule that is no slower."""
        if other := schedule_named(plan.schedule).no_slower:
            with suppress(StageflowError):
                return self.question.asked(replace(plan, planner="", schedule=other)) in self.found
        return False

    def is_answered(self, plan: Plan) -> bool:
        """Whether another planner answered with `plan`, as far as it is known what it does."""
        answers = (found.plan for found in self.question.answered.values() if found)
        return replace(plan, planner="") in (replace(each, planner="") for each in answers)

    def is_cheap(self, plan: Plan) -> bool:
        """Whether simulating `plan` takes at most `CHEAP` of the work."""
        try:
            count = forwards(plan, steady_shape(plan))
        except StageflowError:
            return True  # it is not simulated
        return FORWARD * count <= CHEAP * self.work.left

    @property
    def fastest(self) -> list[Prediction]:
        """What was simulated so far, the most samples/s first."""
        return sorted(self.found.values(), key=lambda each: -each.samples_per_second)

    @cached_property
    def bound(self) -> Callable[[Plan], float]:
        """Samples/s that `plan` does not exceed; those that differ in a schedule alone that is
        bounded alike are counted once. Rough once the work is spent."""
        alike: dict[tuple[bool, bool], str] = {}

        def found(plan: Plan) -> float:
            kind = drains(plan.schedule), schedule_named(plan.schedule).splits()
            name = alike.setdefault(kind, plan.schedule) if kind[0] else ""
            return counted(replace(plan, schedule=name, planner="", advance=1, run_ahead=0))

        counted = cache(self._bound)
        return found

    def rough_bound(self, plan: Plan) -> float:
        """The same for compute alone, at less work and never below it."""
        self.work.count(ROUGH * (1 + len(plan.partition.stages)))
        profile = self.question.at(plan.microbatch)
        rough = self._gain(plan) * compute_bound(profile, self.question.cluster, plan)
        return float(f"{rough * (1 + ROUNDED):.10g}")

    def _gain(self, plan: Plan) -> float:
        return self.question.gain if plan.shares_devices else 1.0

    def _bound(self, plan: Plan) -> float:
        if self.work.is_spent:
            return self.rough_bound(plan)
        self.work.count(PREDICTING / 3 + STAGE * len(plan.partition.stages))
        question, plan = self.question, self.question.coded(plan)
        try:
            most = self._gain(plan) * most_samples(
                question.at(plan.microbatch), question.cluster, plan
            )
        except StageflowError:
            return inf  # predicting it raises the same, with its reason
        return float(f"{most:.10g}")  # equal ones stay in the order in which they were named
