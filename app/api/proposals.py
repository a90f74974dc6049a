"""Plans that are proposed over the API, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from backend.comparison.pareto import pareto
from backend.comparison.to_target import Histories, TimeToTarget, time_to_target
from backend.prediction.answer import Answer
from backend.prediction.energy import Energy
from backend.prediction.prediction import Prediction


@dataclass(frozen=True, slots=True)
class Proposal:
    """An answer (`backend.prediction.answer`): what the plan will do, and what it is compared
    with. `speedup` is over data parallelism, `reason` the first of the `reasons`.
    `samples_per_update` are those of the layer whose update takes most; with `is_short` planning
    ended at its limit of work (`stopped`: where), and searching on may find more. `energy`: null
    where watts of a device are not known; `money` of a sample: null where one has no price.
    `is_pareto`: no other is as good in seconds, joules and money and better in one. `to_target`:
    null where no target is asked for, and where no run by the plan's update rule has come to
    it."""

    prediction: Prediction
    speedup: float | None
    reason: str
    reasons: tuple[str, ...]
    over_one_device: float
    data_parallel_bytes: float | None
    bound_seconds: float
    gap: float
    bottleneck_seconds: float
    planner_seconds: float
    samples_per_update: int
    is_short: bool
    stopped: str
    energy: Energy | None
    money: float | None
    is_pareto: bool
    to_target: TimeToTarget | None


@dataclass(frozen=True, slots=True)
class RefusedPlan:
    """A planner that has no plan under a schedule, and why."""

    planner: str
    schedule: str
    fault: str


@dataclass(frozen=True, slots=True)
class Compared:
    """Every planner's plan under every schedule, the fastest first, and those without one."""

    plans: list[Proposal]
    refused: list[RefusedPlan]


def proposals(answers: Sequence[Answer], histories: Histories) -> list[Proposal]:
    """The answers in their order, with the time to a target where `histories` know it."""
    best = pareto(answers)
    return [_proposal(each, one, histories) for each, one in zip(answers, best, strict=True)]


def _proposal(found: Answer, is_pareto: bool, histories: Histories) -> Proposal:
    names = [field.name for field in fields(Proposal)]
    values = {name: getattr(found, name) for name in names if hasattr(found, name)}
    to_target = time_to_target(found.prediction, histories)
    return Proposal(
        **values, speedup=found.over_data_parallel, is_pareto=is_pareto, to_target=to_target
    )
