"""The plans among which a search chooses: partitions under schedules, in several microbatches."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain, product

from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.pipeline.schedules.double_buffered import DOUBLE_BUFFERED
from backend.pipeline.schedules.interleaved import INTERLEAVED
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.balanced import interleaved, on_neighbours, two_bw, widths
from backend.planning.baselines import data_parallel, straight
from backend.planning.by_speeds import by_speeds
from backend.planning.catalog import PLANNERS
from backend.planning.heads import heads
from backend.planning.linear_partition import DEEPEST
from backend.planning.plan import Partition, Plan, PlanDoesNotFit
from backend.planning.savings import Savings
from backend.planning.sharing_out import shared_out
from backend.planning.work import SearchWork, WorkSpent
from backend.prediction.memory_constrained import (
    memory_constrained_partition,
    memory_constrained_partitions,
)
from backend.prediction.question import Question
from backend.prediction.shapes import with_short_rounds

SPLITS = (1, 2, 4)
"""A minibatch is also tried in twice and four times as many microbatches of a share of the size."""
WIDEST = 64
"""Devices up to which equal pipelines of every depth are among the candidates; of more those of
one, two, four, ... stages."""
PARTITIONS = 0.4
"""Of the work that is left for partitions that fit the memory."""
SAVING = 0.1
"""Of the work that is left for PipeDream's plan with one way to save memory."""
HALVES = 3
"""Times that a microbatch is halved in a step."""


def every_plan(question: Question, work: SearchWork | None = None) -> Iterator[Plan]:
    """Those of `best`, as far as the question admits them.

    Every minibatch has the same samples: `batch` microbatches where the schedule updates once
    per batch, also as more and smaller ones (`SPLITS`), their time in proportion (an
    assumption). A share of the `work` that is left may go into finding partitions.
    """
    work = work or question.work("best")
    every = _every_plan(question, work.part(PARTITIONS))
    return filter(question.admits, chain.from_iterable(shared_too(question, p) for p in every))


def shared_too(question: Question, plan: Plan) -> Iterator[Plan]:
    """A plan, and the same with shares where its stages mix devices of unequal speed: by speed, and
    by what each replica waits for, its compute or its links."""
    yield plan
    if question.cluster.is_uniform:
        return
    profile = question.at(plan.microbatch)
    other, linked = (shared_out(plan, question.cluster, each) for each in (None, profile))
    yield from (each for each in dict.fromkeys((other, linked)) if each != plan)


def _every_plan(question: Question, work: SearchWork) -> Iterator[Plan]:
    whole, chunked = _partitions(question, work), list(interleaved_partitions(question))
    for split, name in product(SPLITS, question.schedules):
        partitions = chunked if schedule_named(name).chunked else whole
        yield from (plan for p in partitions for plan in _plans(question, p, name, split))
    yield from (replace(plan, planner="best") for plan in parallel_pipelines(question))
    if DOUBLE_BUFFERED.name in question.schedules:
        asked = replace(question, schedule=DOUBLE_BUFFERED.name)
        for plans in double_buffered(asked, two_bw_cuts(asked)):
            yield from (replace(plan, planner="best") for plan in plans)


def own_plans(question: Question) -> Iterator[Plan]:
    """What each planner would answer that does not search, under the schedule that it has."""
    if question.schedule and schedule_named(question.schedule).chunked:
        return
    for name, entry in PLANNERS.items():
        if name != "pipedream":
            with suppress(PlanDoesNotFit):
                yield question.plan(name, entry.plan(question.profile, question.cluster))


def pipedream_plan(question: Question, savings: Savings, work: SearchWork) -> Plan:
    """PipeDream's partition within the memory that `savings` leave; with fewer replicas where its
    rounds would be too long to train or to simulate. Raises `PlanDoesNotFit`, `WorkSpent`."""
    whole = data_parallel(question.profile, question.cluster)
    schedule = question.plan("pipedream", whole).schedule
    cut = with_short_rounds(memory_constrained_partition(question, schedule, savings, work))
    return savings.of(question.plan("pipedream", cut))


def saving_plans(question: Question, work: SearchWork) -> Iterator[Plan]:
    """PipeDream's, with each way to save memory: its own answer is that with the least."""
    if question.schedule and schedule_named(question.schedule).chunked:
        return
    for savings in question.savings[1:]:
        with suppress(PlanDoesNotFit, WorkSpent):
            yield pipedream_plan(question, savings, work.part(SAVING))


def head_plans(question: Question) -> Iterator[Plan]:
    """Two stages under PipeDream, and with two versions of the weights in the largest microbatches
    that they admit."""
    found = list(heads(question.profile, question.cluster))
    if PIPEDREAM.name in question.schedules:
        yield from (question.plan("best", each) for each in found)
    if DOUBLE_BUFFERED.name in question.schedules:
        asked = replace(question, schedule=DOUBLE_BUFFERED.name)
        sizes = double_buffered(asked, found)
        largest = {plan.partition: plan for plan in reversed(list(chain.from_iterable(sizes)))}
        yield from largest.values()


def variations(question: Question, plan: Plan) -> Iterator[Plan]:
    """The same partition under the other schedules, in other microbatches, and with other ways to
    save memory; none of several pipelines on the same devices."""
    if plan.num_pipelines > 1:
        return
    for other in _variations(question, plan):
        yield from shared_too(question, other)


def _variations(question: Question, plan: Plan) -> Iterator[Plan]:
    partition = plan.partition.sharing(())
    plan = replace(plan, partition=partition)
    least = Savings(plan.recompute, plan.shard_state)
    for split, name in product(SPLITS, question.schedules):
        rule, chunks = schedule_named(name), partition.chunks
        if rule.chunked == (chunks > 1) and rule.placement_of(chunks) is partition.placement:
            yield from map(least.of, _plans(question, partition, name, split))
    yield from resized(plan)
    for savings in question.savings:
        yield savings.of(plan)


def halved(plan: Plan) -> Iterator[Plan]:
    """As many samples per update, in microbatches of half the size."""
    if schedule_named(plan.schedule).batched and plan.microbatch % 2 == 0:
        yield replace(plan, microbatch=plan.microbatch // 2, batch=plan.batch * 2)


def resized(plan: Plan) -> Iterator[Plan]:
    """The same in microbatches of other sizes: half, a quarter and an eighth, for halves alone may
    be slower than either; and twice the size."""
    smaller = [plan]
    for _ in range(HALVES):
        smaller = [half for each in smaller for half in halved(each)]
        yield from smaller
    if schedule_named(plan.schedule).batched and plan.batch % 2 == 0:
        yield replace(plan, microbatch=plan.microbatch * 2, batch=plan.batch // 2)


def two_bw_cuts(question: Question) -> list[Partition]:
    """PipeDream-2BW's: every width and depth, what its formula likes first."""
    chosen = two_bw(question.profile, question.cluster, question.batch)
    cuts = widths(question.profile, question.cluster)
    return sorted(cuts, key=lambda cut: cut != chosen)


def double_buffered(question: Question, partitions: Iterable[Partition]) -> Iterator[list[Plan]]:
    """Those by microbatch size, the largest first: with updates of the samples that are asked for,
    in at least as many microbatches as the pipeline runs ahead."""
    cuts = list(partitions)
    rule = schedule_named(question.schedule or DOUBLE_BUFFERED.name)
    size = question.profile.microbatch
    while size:
        batch = question.samples // size
        if batch * size == question.samples:
            yield [
                Plan("pipedream-2bw", cut, rule.name, size, batch if rule.batched else 1)
                for cut in cuts
                if batch >= rule.least_batch(cut.replicas, question.run_ahead or 0)
            ]
        size //= 2


def interleaved_partitions(question: Question) -> Iterator[Partition]:
    """Equal stages, `question.chunks` on each device (two, where the schedule is a V), for every
    depth that divides the devices."""
    rule = schedule_named(question.schedule) if question.schedule else INTERLEAVED
    placement = rule.placement_of(question.chunks)
    devices, layers = question.cluster.num_devices, len(question.profile.layers)
    most = min(devices, layers // question.chunks, DEEPEST // question.chunks)
    for depth in range(2, most + 1):
        if devices % depth == 0:
            cut = interleaved(question.profile, depth, devices // depth, question.chunks)
            yield cut.placed(placement)


def parallel_pipelines(question: Question) -> Iterator[Plan]:
    """AvgPipe's: the number of parallel pipelines N, microbatches m and the advance a of a straight
    pipeline, under the schedules that are asked for and meant for several of them."""
    for name in question.schedules:
        if schedule_named(name).parallel:
            yield from _side_by_side(question, name)


def _side_by_side(question: Question, name: str) -> Iterator[Plan]:
    partition = straight(question.profile, question.cluster)
    size, counts = question.profile.microbatch, range(1, question.pipelines + 1)
    for num_pipelines, split, advance in product(counts, SPLITS, schedule_named(name).advances):
        if size % split == 0 and not (advance and len(partition.stages) == 1):
            plan = Plan("avgpipe", partition, name, size // split, question.batch * split)
            yield replace(plan, num_pipelines=num_pipelines, advance=advance)


def _plans(question: Question, partition: Partition, name: str, split: int) -> Iterator[Plan]:
    size = question.profile.microbatch
    if not schedule_named(name).batched:
        if split == 1:
            yield Plan("best", partition, name, size)
    elif size % split == 0:
        yield Plan("best", partition, name, size // split, question.batch * split)


def _partitions(question: Question, work: SearchWork) -> list[Partition]:
    """Those of all planners, equal pipelines of every depth, two stages, those by the sum of
    speeds, and what memory asks for; with rounds that are not too long."""
    profile, cluster = question.profile, question.cluster
    found = dict.fromkeys(memory_constrained_partitions(question, question.schedules, work))
    for name, entry in PLANNERS.items():
        if name != "pipedream":
            with suppress(PlanDoesNotFit):
                found[entry.plan(profile, cluster)] = None
    found |= dict.fromkeys(heads(profile, cluster))
    found |= dict.fromkeys(by_speeds(profile, cluster, question.batch))
    for each in widths(profile, cluster):
        depth = len(each.stages)
        if cluster.num_devices <= WIDEST or depth & (depth - 1) == 0:
            found[each] = found[on_neighbours(each)] = None
    return list(dict.fromkeys(map(with_short_rounds, found)))
