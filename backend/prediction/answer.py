"""One entry to planning: pages, commands and REST ask `rank`, and `by_hand` for a plan by hand."""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from backend.errors import InvalidInput, StageflowError
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.baselines import data_parallel
from backend.planning.catalog import SEARCHES
from backend.planning.cuts import BY_HAND, read_cut
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.plan import Partition, Plan, PlanDoesNotFit
from backend.planning.work import SearchWork
from backend.prediction.across_sites import across, in_a_site, planned, planned_first
from backend.prediction.completed import completed
from backend.prediction.cost import money
from backend.prediction.energy import Energy, energy
from backend.prediction.kept_orders import brought, with_order
from backend.prediction.least_seconds import least_seconds
from backend.prediction.prediction import Prediction
from backend.prediction.question import PLANNER_NAMES, Question
from backend.prediction.reasons import reasons
from backend.prediction.same_updates import samples_per_update
from backend.prediction.watch import UNWATCHED, Watch
from backend.units import percent_text


@dataclass(frozen=True, slots=True)
class Answer:
    """A prediction beside what it is compared with. None where that does not fit or run.

    over_data_parallel   its samples/s over those of data parallelism on all devices, under the
                         same schedule
    over_one_device      over those of the fastest device alone
    data_parallel_bytes  what data parallelism sends for as many samples as a minibatch has
    bound_seconds        no plan takes less for a minibatch (`least_seconds`): all compute evenly on
                         all devices, and what any partition must send
    bottleneck_seconds   seconds per microbatch by PipeDream's cost model
    energy               joules of a sample, where watts of the plan's devices are known
    money                of a sample, where the plan's devices have prices
    reasons              what holds the plan back, what memory made of it, and what moving a layer
                         would change
    planner_seconds      processor seconds that planning took, simulations included
    is_short             planning ended at its limit of work; more may find a faster plan
    stopped              where it ended, in words; "" where it did not, or nobody said
    """

    prediction: Prediction
    over_data_parallel: float | None
    over_one_device: float
    data_parallel_bytes: float | None
    bound_seconds: float
    bottleneck_seconds: float
    reasons: tuple[str, ...]
    planner_seconds: float
    is_short: bool = False
    stopped: str = ""
    energy: Energy | None = None
    money: float | None = None

    @property
    def seconds_per_sample(self) -> float:
        plan = self.prediction.plan
        return self.prediction.seconds_per_minibatch / (plan.batch * plan.microbatch)

    @property
    def gap(self) -> float:
        """By how much another plan may be faster at most, as a share of the plan's seconds."""
        seconds = self.prediction.seconds_per_minibatch
        return max(0.0, 1 - self.bound_seconds / seconds) if seconds else 0.0

    @property
    def headroom(self) -> float:
        """How many more samples/s another plan may have at most, as a share of this one's."""
        seconds = self.prediction.seconds_per_minibatch
        return max(0.0, seconds / self.bound_seconds - 1) if self.bound_seconds else 0.0

    @property
    def limit_words(self) -> str:
        """What a person should know of how it was found; "" where nothing was left out."""
        said = []
        if self.is_short:
            where = f" ({self.stopped})" if self.stopped else ""
            more = (
                f"{percent_text(self.headroom, 1)} faster"
                if self.headroom < 1
                else f"{1 + self.headroom:.1f} times as fast"
            )
            said.append(
                f"Planning stopped at its limit of work{where}. At most {more} is possible; a "
                "longer search may find it."
            )
        if not self.prediction.is_simulated:
            said.append("The plan is too large to simulate: its rate is an estimate, mostly high.")
        return " ".join(said)

    @property
    def samples_per_update(self) -> int:
        """Of the layer whose update takes most."""
        return samples_per_update(self.prediction.plan)

    @property
    def reason(self) -> str:
        """What holds the plan back, in a sentence."""
        return self.reasons[0]


@dataclass(frozen=True, slots=True)
class Reply:
    """A planner's answer, or the fault for which it has none."""

    planner: str
    schedule: str
    answer: Answer | None
    fault: StageflowError | None = None


def rank(question: Question, watch: Watch = UNWATCHED) -> list[Answer]:
    """One answer per planner that is asked, the most simulated samples/s first; see `ranked`."""
    return ranked(replies(question, watch))


def ranked(found: Iterable[Reply]) -> list[Answer]:
    """The answers, the most samples/s first. Planners that found the same plan make one, under
    the first of their names. Where there is no answer, raises the first `PlanDoesNotFit`, else the
    first fault."""
    answers: dict[Plan, Answer] = {}
    faults: list[StageflowError] = []
    for reply in found:
        if reply.fault:
            faults.append(reply.fault)
        if reply.answer:
            plan = replace(reply.answer.prediction.plan, planner="")
            answers.setdefault(plan, reply.answer)
    if not answers:
        raise next((fault for fault in faults if isinstance(fault, PlanDoesNotFit)), faults[0])
    return sorted(answers.values(), key=lambda one: -one.prediction.samples_per_second)


def replies(question: Question, watch: Watch = UNWATCHED) -> Iterator[Reply]:
    """What each planner that is asked says, as it comes; those that have no answer too. Each says
    the same when it is asked alone."""
    for name in _asked(question):
        try:
            found = _answer(name, question, watch, question.work(name, watch.check))
        except StageflowError as fault:
            yield Reply(name, question.schedule, None, fault)
        else:
            yield Reply(name, found.prediction.plan.schedule, found)


def at_once(question: Question, watch: Watch = UNWATCHED) -> Iterator[Reply]:
    """For who looks on while `best` searches: a first answer, found in a fraction of a second; none
    where that finds no plan. Of a planner's replies the last one holds."""
    with suppress(StageflowError):
        first = judge(question, planned_first(question, watch))
        yield Reply("best", first.prediction.plan.schedule, first)


def compare(question: Question, watch: Watch = UNWATCHED) -> Iterator[Reply]:
    """Every planner that is asked under every schedule (or the one that is asked for), as it is
    computed. Planners that choose the schedule are asked once."""
    for name in _asked(question):
        schedules = ("",) if name in SEARCHES else question.schedules
        for schedule in (question.schedule,) if question.schedule else schedules:
            yield from replies(replace(question, planner=name, schedule=schedule), watch)


def by_hand(question: Question, plan: Plan) -> Answer:
    """The answer for a plan that nobody searched for: predicted as it is, with codecs where these
    are to be chosen, and judged. Raises `PlanDoesNotFit` and `InvalidInput`."""
    found = question.predict(with_order(question, plan))
    return judge(question, completed(question, found, question.work(BY_HAND), deeper=False))


def redrawn(question: Question, plan: Plan, partition: Partition, codecs: str = "") -> Answer:
    """The answer for `plan` with another partition or with these codecs (as `codecs_of` reads
    them; "": those that the question says), as far ahead as the question says, or as is faster.
    Raises as `by_hand`, also where the plan's schedule takes no depth and one is asked for."""
    asked = replace(question, codec=codecs) if codecs else question
    schedule_named(plan.schedule).check_run_ahead(asked.run_ahead or 0)
    edited = replace(plan, planner=BY_HAND, partition=partition, codecs=(), run_ahead=0)
    found = asked.predict(with_order(asked, asked.asked(edited)))
    return judge(asked, completed(asked, found, asked.work(BY_HAND)))


def cut_by_hand(question: Question, cut: str) -> Answer:
    """The answer for a partition in a word (`backend.planning.cuts`), under the schedule that is
    asked for. Raises likewise, and `InvalidInput` where a planner is asked for too."""
    if question.planner:
        raise InvalidInput(
            f"a cut is a partition by hand, {question.planner!r} makes its own",
            "Give the cut or the planner.",
        )
    asked = in_a_site(question) if question.sites else question
    whole = data_parallel(asked.profile, asked.cluster)
    partition = read_cut(cut, whole, asked.cluster.num_devices)
    plan = with_order(asked, asked.plan(BY_HAND, partition))
    found = completed(asked, asked.fitting(plan), asked.work(BY_HAND))
    return judge(question, across(question, found))


def by_order(question: Question, data: bytes, cut: str = "") -> Answer:
    """The answer for the order in a file of any form of programs, on stages of about equal compute
    or those of `cut`. Raises as `brought`, `cut_by_hand` and `by_hand`."""
    plan = brought(data, question.profile, question.cluster)
    if cut:
        whole = data_parallel(question.profile, question.cluster)
        partition = read_cut(cut, whole, question.cluster.num_devices)
        plan = replace(plan, partition=partition, planner=BY_HAND)
    return by_hand(question, question.asked(plan))


def judge(question: Question, prediction: Prediction, seconds: float = 0.0) -> Answer:
    """`prediction` beside data parallelism, one device and the lower bound."""
    plan, cluster = prediction.plan, question.cluster
    profile = question.at(plan.microbatch)
    update = sum(layer.update for layer in profile.layers)
    alone = (plan.batch * profile.compute + update) / max(device.speed for device in cluster.each)
    parallel = _data_parallel(question, plan)
    return Answer(
        prediction,
        _ratio(prediction, parallel),
        alone / prediction.seconds_per_minibatch if prediction.seconds_per_minibatch else 0.0,
        _bytes_for(prediction, parallel),
        least_seconds(question, plan),
        bottleneck(profile, cluster, plan.partition) if plan.partition.chunks == 1 else 0.0,
        tuple(reasons(question, prediction)),
        seconds,
        energy=energy(prediction, cluster, profile),
        money=money(prediction, cluster),
    )


def _asked(question: Question) -> tuple[str, ...]:
    """`best` last: what the others found is where it begins. Raises `InvalidInput` where the codec
    of each cut is named: planners choose the cuts."""
    if "," in question.codec:
        raise InvalidInput(
            f"codecs {question.codec!r} are for the cuts of one plan, and planners make their own",
            "Name one codec for all cuts, or give the cut by hand.",
        )
    names = sorted(PLANNER_NAMES, key="best".__eq__)
    return (question.planner,) if question.planner else tuple(names)


def _answer(name: str, question: Question, watch: Watch, work: SearchWork) -> Answer:
    start = time.process_time()
    prediction = planned(name, question, watch, work)
    found = judge(question, prediction, time.process_time() - start)
    return replace(found, is_short=work.is_short, stopped=work.stopped)


def _data_parallel(question: Question, plan: Plan) -> Prediction | None:
    """The model on every device under the plan's schedule, or under PipeDream's where that is
    not for one stage."""
    partition = data_parallel(question.profile, question.cluster)
    batch = question.batch if schedule_named(plan.schedule).batched else 1
    for schedule, size in ((plan.schedule, batch), (PIPEDREAM.name, 1)):
        other = Plan("data-parallel", partition, schedule, question.profile.microbatch, size)
        try:
            return question.fitting(other)
        except InvalidInput:
            continue
        except StageflowError:
            return None
    return None


def _ratio(mine: Prediction, other: Prediction | None) -> float | None:
    if other is None or not other.samples_per_second:
        return None
    return mine.samples_per_second / other.samples_per_second


def _bytes_for(mine: Prediction, other: Prediction | None) -> float | None:
    """What `other` sends for the samples of a minibatch of `mine`."""
    if other is None:
        return None
    samples = mine.plan.batch * mine.plan.microbatch
    return other.sent_bytes * samples / (other.plan.batch * other.plan.microbatch)
