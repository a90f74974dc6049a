"""What plans are ranked by: samples/s, the time to a target, or the energy or money of a sample."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from backend.comparison.to_target import (
    Histories,
    Target,
    TimeToTarget,
    asked_for,
    target_of,
    time_to_target,
)
from backend.errors import InvalidInput
from backend.prediction.answer import Answer, Reply, ranked, replies
from backend.prediction.question import Question


class SampleFigure(StrEnum):
    """Of a sample, what plans may be ranked by where a share of the most samples/s is enough."""

    ENERGY = "energy"
    MONEY = "money"


@dataclass(frozen=True, slots=True)
class Fewest:
    """The fewest joules, or the least money, of the plans with at least `floor` (0 to 1) of the
    most samples/s."""

    figure: SampleFigure
    floor: float

    def of(self, answer: Answer) -> float | None:
        """Its figure; None where it is not known."""
        if self.figure is SampleFigure.MONEY:
            return answer.money
        return answer.energy.joules if answer.energy else None


@dataclass(frozen=True, slots=True)
class Aim:
    """Nothing of it: the most samples/s.

    target     the soonest at it, by what runs took to it (`histories`)
    fewest     of a sample, at a share of the speed
    """

    target: Target | None = None
    histories: Histories = field(default_factory=dict)
    fewest: Fewest | None = None

    def questions(self, question: Question) -> tuple[Question, ...]:
        """What is to be planned; see `to_target.asked_for`."""
        return asked_for(question, self.histories)

    def rank(
        self, question: Question, ask: Callable[[Question], Iterable[Reply]] = replies
    ) -> list[Answer]:
        """As `answer.rank`, by this aim; `ask` searches, here or in another process. Raises what
        these raise."""
        return self.ranked(
            ranked(reply for each in self.questions(question) for reply in ask(each))
        )

    def ranked(self, answers: Iterable[Answer]) -> list[Answer]:
        """The best first; those of which it is not known last, the most samples/s first."""
        found = list(answers)
        speeds = [each.prediction.samples_per_second for each in found]
        least = max(speeds, default=0.0) * (self.fewest.floor if self.fewest else 0.0)

        def order(answer: Answer) -> tuple[float, float]:
            speed = answer.prediction.samples_per_second
            if self.fewest is not None:
                known = self.fewest.of(answer) if speed >= least else None
                return inf if known is None else known, -speed
            time = self.time_of(answer)
            return time.seconds if time else inf, -speed

        return sorted(found, key=order)

    def time_of(self, found: Answer) -> TimeToTarget | None:
        """Until its target; None without one, and where no run tells it."""
        return time_to_target(found.prediction, self.histories)


FASTEST = Aim()


def aim_of(
    accuracy: float | None,
    loss: float | None,
    energy_floor: float | None,
    money_floor: float | None,
    learnt: Callable[[Target], Histories],
) -> Aim:
    """What is asked for; `learnt` tells what runs took to a target. Raises `InvalidInput` for two
    aims, and for bad figures."""
    target = target_of(accuracy, loss)
    floors = {SampleFigure.ENERGY: energy_floor, SampleFigure.MONEY: money_floor}
    asked = [Fewest(figure, floor) for figure, floor in floors.items() if floor is not None]
    if not asked:
        return Aim(target, learnt(target)) if target else FASTEST
    if target is not None or len(asked) > 1:
        given = "two floors" if len(asked) > 1 else f"a target and a floor for {asked[0].figure}"
        raise InvalidInput(f"{given} are given", "Rank by one of them at a time.")
    if not 0 <= asked[0].floor <= 1:
        raise InvalidInput(
            f"a floor of {asked[0].floor:g} is not a share of the most samples/s",
            f"0.9: plans with nine tenths of them or more are ranked by {asked[0].figure}.",
        )
    return Aim(fewest=asked[0])
