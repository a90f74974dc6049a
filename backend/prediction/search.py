"""The best plan of all: partition, schedule, microbatch, recomputation and lanes, by simulation."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput, StageflowError
from backend.pipeline.schedules.catalog import executable_schedules
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.balanced import interleaved, two_bw, widths
from backend.planning.baselines import straight
from backend.planning.catalog import PLANNERS
from backend.planning.plan import Partition, Plan, PlanDoesNotFit
from backend.prediction.lanes import with_gain
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.prediction.within import partition_within, partitions_within
from backend.profiles.profile import Profile
from backend.profiles.what_if import at_microbatch

SPLITS = (1, 2, 4)
"""A minibatch is also tried in twice and four times as many microbatches of a share of the size."""
CHUNKS = 2
LANES = (1, 2, 3)
WIDEST = 64
"""Devices up to which equal pipelines of every depth are among the candidates."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a search is asked: `schedule` and `batch` as in `propose`; "" for any schedule.

    gain     what two lanes on a device compute more than one (`gain_of_lanes`); 1: nothing
    further  profiles of the same layers at other microbatch sizes; at a size that nobody
             measured times are in proportion
    """

    profile: Profile
    cluster: Cluster
    schedule: str = ""
    batch: int = 4
    optimizer: str = "momentum"
    gain: float = 1.0
    further: tuple[Profile, ...] = ()

    def at(self, microbatch: int) -> Profile:
        """The profile at that microbatch size: as measured, else in proportion."""
        measured = (p for p in (self.profile, *self.further) if p.microbatch == microbatch)
        return next(measured, None) or at_microbatch(self.profile, microbatch)

    @property
    def schedules(self) -> tuple[str, ...]:
        """The one that is asked for, or all that a run may use."""
        return (self.schedule,) if self.schedule else tuple(s.name for s in executable_schedules())

    def plan(self, planner: str, partition: Partition) -> Plan:
        """`partition` under the schedule that is asked for, or its planner's own."""
        own = "2bw" if planner == "pipedream-2bw" else "pipedream"
        schedule = self.schedule or own
        batch = self.batch if schedule_named(schedule).batched else 1
        return Plan(planner, partition, schedule, self.profile.microbatch, batch)

    def predict(self, plan: Plan) -> Prediction:
        profile = self.at(plan.microbatch)
        if plan.lanes > 1 and self.gain > 1:
            profile = with_gain(profile, self.gain)
        return predict(profile, self.cluster, plan, self.optimizer)


def best(question: Question) -> Prediction:
    """The plan with the most simulated samples/s of all candidates that fit.

    Every minibatch has the same samples: `batch` microbatches where the schedule updates once
    per batch, also as more and smaller ones (`SPLITS`), their time in proportion (an
    assumption). Recomputation is tried where a plan does not fit without. What the schedules
    learn per sample (weights that are late) is not weighed. Raises `PlanDoesNotFit`.
    """
    return _fastest(question, _candidates(question))


def avgpipe(question: Question) -> Prediction:
    """AvgPipe on a straight pipeline: lanes N, microbatches m and advance a with the most
    simulated samples/s within the memory (Chen et al., PPoPP 2023; our tuning).

    Lanes on one device compute one at a time, so that only waiting is filled; what kernels of
    several lanes gain together a measured two-lane run tells (`Question.gain`). Raises
    `PlanDoesNotFit`.
    """
    return _fastest(question, _lanes(question))


def _fastest(question: Question, plans: Iterator[Plan]) -> Prediction:
    found: Prediction | None = None
    fault: StageflowError | None = None
    for plan in plans:
        rate = found.samples_per_second if found else 0.0
        if _most_samples(question, plan) <= rate:
            continue
        try:
            prediction = _with_or_without_recomputation(question, plan)
        except StageflowError as error:
            fault = fault or error
            continue
        if prediction.samples_per_second > rate:
            found = prediction
    if found is None:
        raise fault or PlanDoesNotFit("no schedule admits any partition", "Ask for another one.")
    return found


def _with_or_without_recomputation(question: Question, plan: Plan) -> Prediction:
    try:
        return question.predict(plan)
    except PlanDoesNotFit:
        return question.predict(replace(plan, recompute=True))


def _most_samples(question: Question, plan: Plan) -> float:
    """Samples/s that no simulation of `plan` exceeds: compute alone, at its slowest stage."""
    cluster, partition = question.cluster, plan.partition
    layers = question.at(plan.microbatch).in_order(partition.order).layers
    worst = 0.0
    for position in range(partition.positions):
        stages = partition.stages[position :: partition.positions]
        compute = sum(x.compute for s in stages for x in layers[s.first : s.stop])
        speed = sum(cluster.at(device).speed for device in stages[0].devices)
        worst = max(worst, compute / speed)
    gain = question.gain if plan.lanes > 1 else 1.0
    return gain * plan.microbatch / worst if worst else float("inf")


def _candidates(question: Question) -> Iterator[Plan]:
    partitions = _partitions(question)
    for split, name in product(SPLITS, question.schedules):
        yield from (plan for p in partitions for plan in _plans(question, "best", p, name, split))
    if "interleaved" in question.schedules:
        for partition, split in product(_interleaved(question), SPLITS):
            yield from _plans(question, "best", partition, "interleaved", split)
    if "afp" in question.schedules:
        yield from (replace(plan, planner="best") for plan in _lanes(question))


def _plans(
    question: Question, planner: str, partition: Partition, name: str, split: int
) -> Iterator[Plan]:
    rule, size = schedule_named(name), question.profile.microbatch
    if partition.chunks > 1 and not rule.chunked:
        return
    if not rule.batched:
        if split == 1:
            yield Plan(planner, partition, name, size)
    elif size % split == 0:
        yield Plan(planner, partition, name, size // split, question.batch * split)


def _partitions(question: Question) -> list[Partition]:
    """Those of all planners, equal pipelines of every depth, and what memory asks for."""
    profile, cluster = question.profile, question.cluster
    found: dict[Partition, None] = {}
    found.update(dict.fromkeys(partitions_within(question, question.schedules)))
    for name, entry in PLANNERS.items():
        if name != "pipedream":
            with suppress(PlanDoesNotFit):
                found[entry.plan(profile, cluster)] = None
    if cluster.num_devices <= WIDEST:
        found.update(dict.fromkeys(widths(profile, cluster)))
    return list(found)


def _interleaved(question: Question) -> Iterator[Partition]:
    devices, layers = question.cluster.num_devices, len(question.profile.layers)
    for depth in range(2, min(devices, layers // CHUNKS) + 1):
        if devices % depth == 0:
            yield interleaved(question.profile, depth, devices // depth, CHUNKS)


def _lanes(question: Question) -> Iterator[Plan]:
    """AvgPipe's plans: lanes N, microbatches m, advance a."""
    partition = straight(question.profile, question.cluster)
    size = question.profile.microbatch
    for lanes, split, advance in product(LANES, SPLITS, (0, 1)):
        if size % split == 0 and not (advance and len(partition.stages) == 1):
            yield Plan(
                "avgpipe",
                partition,
                "afp",
                size // split,
                question.batch * split,
                lanes=lanes,
                advance=advance,
            )


def search(name: str, question: Question) -> Prediction:
    """The prediction of the planner `name`, whichever kind it is. Raises `InvalidInput` on an
    unknown name, `PlanDoesNotFit`."""
    if name == "best":
        return best(question)
    if name == "avgpipe":
        return avgpipe(question)
    if name in PLANNERS:
        return _planned(name, question)
    known = ", ".join((*PLANNERS, "best", "avgpipe"))
    raise InvalidInput(f"no planner {name!r}", f"Known are: {known}.")


def _planned(name: str, question: Question) -> Prediction:
    if question.schedule and schedule_named(question.schedule).chunked:
        return _fastest(question, _chunked(name, question))
    if name == "pipedream-2bw":
        return _two_bw(question, question.schedule or "2bw")
    if name == "pipedream":
        partition = partition_within(question, question.schedule or "pipedream")
    else:
        partition = PLANNERS[name].plan(question.profile, question.cluster)
    return question.predict(question.plan(name, partition))


def _chunked(name: str, question: Question) -> Iterator[Plan]:
    """The plans of a planner of equal stages with several of them on each device."""
    depths = {"pipedream-2bw": None, "gpipe-balanced": question.cluster.num_devices}
    if name not in depths:
        raise InvalidInput(
            f"{name} gives a device one stage, {question.schedule} asks for several",
            f"Use {', '.join(depths)} or best.",
        )
    for partition in _interleaved(question):
        if depths[name] in (None, partition.positions):
            yield question.plan(name, partition)


def _two_bw(question: Question, schedule: str) -> Prediction:
    """The largest microbatch that fits, then width, depth and recomputation with the most
    simulated samples/s (ICML 2021, section 3.3). An update takes at least as many microbatches
    as the pipeline runs ahead."""
    chosen = two_bw(question.profile, question.cluster, question.batch)
    every = list(widths(question.profile, question.cluster))
    every.sort(key=lambda partition: partition != chosen)
    fault: PlanDoesNotFit | None = None
    size = question.profile.microbatch
    while size:
        fitting: list[Prediction] = []
        for partition, recompute in product(every, (False, True)):
            batch = max(question.batch, len(partition.stages) * partition.replicas[0])
            batch = batch if schedule_named(schedule).batched else 1
            plan = Plan("pipedream-2bw", partition, schedule, size, batch, recompute)
            try:
                fitting.append(question.predict(plan))
            except PlanDoesNotFit as error:
                fault = error
        if fitting:
            return max(fitting, key=lambda prediction: prediction.samples_per_second)
        size //= 2
    raise fault or PlanDoesNotFit("no width and depth fits", "Use more devices.")
