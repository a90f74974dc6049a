"""How plans, partitions, ranks, machines, people, filters and cleared runs are called."""

import re
from collections.abc import Sequence
from datetime import UTC, tzinfo

from app.formats import (
    NOTHING,
    ago,
    bandwidth,
    change,
    count,
    duration,
    moment,
    number,
    percent,
    seconds,
    size,
    stages_words,
    times,
)
from backend.cluster.cluster import Cluster, Device
from backend.comparison.shared_cores import SharedCores
from backend.comparison.traced_runs import TracedRun
from backend.people.person import Person
from backend.pipeline.codecs.catalog import write_codecs
from backend.planning.catalog import title
from backend.planning.cuts import BY_HAND
from backend.planning.optimizers import OPTIMIZERS
from backend.planning.plan import Partition, Plan
from backend.prediction.fallback import Fallback
from backend.prediction.fallbacks import order_words
from backend.prediction.fewer_sites import FEWER_SITES
from backend.runs.clusters import StoredCluster
from backend.runs.history.followed import Followed, Following
from backend.runs.history.listing import RunFilter
from backend.runs.history.records import StoredAttempt
from backend.runs.plans import StoredPlan
from backend.runs.pools.pool import Pool, foretold
from backend.runs.pools.room import Machines
from backend.runs.profiles import StoredProfile
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import RunSpec
from backend.runs.run import Run
from backend.runs.sweeps.report import SweepReport
from backend.units import count_text

SHORT, MOST_RANKS = 11, 8  # characters; ranks that are named one by one
SOON = 90.0
"""Seconds of waiting that are not worth telling: a cluster looks at its queue now and then."""


def partition_name(cut: Partition) -> str:
    """Replicas per stage while that is short, "2-1", with shares or without; else their number."""
    names = cut.label, cut.sharing(()).label
    return next((n for n in names if len(n) <= SHORT), f"{len(cut.stages)} stages")


def plan_name(plan: Plan) -> str:
    """A plan in two words: "2-1 · pipedream"."""
    return f"{partition_name(plan.partition)} · {plan.schedule}"


def plan_words(plan: Plan, microbatch: int) -> list[str]:
    """What else a plan is, in words, where it is not as usual; `microbatch`: the profile's."""
    said = {
        f"batch {plan.batch}": plan.batch > 1,
        f"microbatch {plan.microbatch}": plan.microbatch != microbatch,
        f"{plan.partition.chunks} chunks": plan.partition.chunks > 1,
        plan.pipelines_words: plan.num_pipelines > 1,
        f"run ahead {plan.run_ahead}": plan.run_ahead > 0,
        f"codec {write_codecs(plan.codecs)}": bool(plan.codecs),
        plan.codec_of_sums.words if plan.codec_of_sums else "": plan.codec_of_sums is not None,
        count_text(len(plan.splits), "split layer"): bool(plan.splits),
        "recomputed": plan.recompute,
        "sharded state": plan.shard_state,
    }
    return [words for words, is_so in said.items() if is_so]


def rule_words(rule: OptimizerSpec) -> list[str]:
    """How weights are updated, in words; what is as usual is left out."""
    said = [f"{OPTIMIZERS[rule.name].title} at {rule.learning_rate:g}"]
    if rule.groups:
        said.append(count(len(rule.groups), "group of weights", "groups of weights"))
    if rule.clip_norm is not None and rule.clip_by == "stage":
        said.append(f"clipped at {rule.clip_norm:g} by each stage's own norm")
    if rule.ema:
        said.append(f"evaluated and saved: averaged weights (EMA {rule.ema:g})")
    return said


def followed_words(followed: Followed) -> str:
    """How it goes with a run in a tracker: "followed, 120 points sent"."""
    states = {
        Following.ON: "followed",
        Following.DONE: "complete",
        Following.FAILED: "given up",
        Following.OFF: "stopped",
    }
    said = [states[followed.state], f"{count(followed.sent, 'point')} sent"]
    return ", ".join(said + [f"failure {followed.tries}"] * bool(followed.tries))


def label_words(noun: str, kept: StoredPlan | StoredProfile | StoredCluster) -> str:
    """Its labels in a line: "plan 3 is the one for Monday; tags baseline, paper"."""
    said = [f"{noun} {kept.id} is {kept.name}" if kept.name else f"{noun} {kept.id} has no name"]
    said += [f"tags {', '.join(kept.tags)}"] if kept.tags else []
    said += [f"note: {kept.note}"] if kept.note else []
    return "; ".join(said)


def planner_name(name: str) -> str:
    """A planner in a word or two: "PipeDream-2BW", "Best"; of a plan by hand "Edited by hand"."""
    return "Edited by hand" if name == BY_HAND else re.split("[:,]", title(name))[0]


def shared_words(found: SharedCores) -> str:
    """What others took of a run's cores: "43 % of the time in which ranks could compute (rank 0
    41 %, rank 1 45 %); 1.2 of 2 cores were busy with others, load 3.1 at the start"."""
    ranks = ", ".join(f"rank {rank} {percent(part, 0)}" for rank, part in found.by_rank.items())
    each = f" ({ranks})" if len(found.by_rank) <= MOST_RANKS else ""
    who = (
        f"emulated ranks waited for a core in {percent(found.taken, 0)} of the time{each}"
        if found.emulated
        else f"others had {percent(found.taken, 0)} of the time in which ranks could compute{each}"
    )
    return (
        f"{who}; {found.others:.1f} of {count(found.cores, 'core')} busy with others, load "
        f"{found.load:.1f} at the start"
    )


def traced_words(found: TracedRun) -> str:
    """A step of a run elsewhere as a whole, in a line, with the ranks that were slow."""
    slow = ", ".join(
        f"rank {rank.rank} ({times(rank.computed / rank.predicted)})"
        for rank in found.slow
        if rank.predicted
    )
    return (
        f"{seconds(found.makespan)} measured, {seconds(found.predicted_makespan)} predicted "
        f"({change(found.makespan, found.predicted_makespan)}); bubble {percent(found.bubble)}, "
        f"predicted {percent(found.predicted_bubble)}; "
        + (f"slower than predicted: {slow}" if slow else "no rank is slow")
    )


NO_PLAN = "no plan makes the same updates"


def fallback_words(found: Sequence[Fallback]) -> str:
    """How a training goes on without machines: "If one node is lost: 0.71× the samples/s; if two
    are lost: ...", and what is other on fewer sites, or in place of an order that is kept."""
    said = {lost: _without(found, lost) for lost in (1, 2)}
    other = [FEWER_SITES] * any(each.sites for each in found) + [order_words(found)]
    more = "".join(f". {words}" for words in other if words)
    if said[1] == said[2]:
        return f"If one or two nodes are lost: {said[1]}{more}" if said[1] else ""
    heads = {1: "If one node is lost", 2: "if two are lost"}
    return "; ".join(f"{heads[lost]}: {words}" for lost, words in said.items() if words) + more


def _without(found: Sequence[Fallback], lost: int) -> str:
    """The same of so many machines; the least and the most factor where it matters which."""
    here = [each for each in found if each.count == lost]
    factors = sorted({times(each.factor) for each in here if each.plan})
    rates = " or ".join(factors[:1] + factors[1:][-1:])
    none = "no site is left" if any(each.sites for each in found) else NO_PLAN
    left = [none] if any(each.plan is None for each in here) else []
    return " or ".join(left + [f"{rates} the samples/s"] * bool(rates))


def attempt_plan(attempt: StoredAttempt) -> str:
    """The plan that an attempt went on by: "1-1 · gpipe, 0.62×"; "" for the run's own."""
    if attempt.plan is None:
        return ""
    return f"{plan_name(attempt.plan)}, {times(attempt.factor or 0.0)}"


def rank_names(plan: Plan) -> tuple[str, ...]:
    """One per rank, in rank order: "rank 0 · stage 0"; with several chunks on a device "rank 0 ·
    stages 0, 2", of the second parallel pipeline "rank 2 · stage 0 · pipeline 1"."""
    cut = plan.partition
    places = []
    for pipeline_rank, replicas in enumerate(cut.replicas):
        places += [stages_words(cut.held_by(pipeline_rank))] * replicas
    names = [
        place if plan.num_pipelines == 1 else f"{place} · {plan.pipeline_word} {pipeline}"
        for pipeline in range(plan.num_pipelines)
        for place in places
    ]
    return tuple(f"rank {rank} · {name}" for rank, name in enumerate(names))


def machines_words(kinds: Sequence[Machines]) -> str:
    """A pool's machines: "4 × 8 h100, 80.0 GiB each"."""
    parts = []
    for kind in kinds:
        each = f", {size(kind.device.memory)} each" if kind.device.memory else ""
        parts.append(f"{kind.count} × {kind.devices} {kind.device.name}{each}")
    return "; ".join(parts) or NOTHING


def start_words(pools: Sequence[Pool], spec: RunSpec) -> str:
    """When the first job of a run would start, as its cluster foretells it: "A job of 2 machines
    with 4 devices each would start at 14:02 UTC, by the estimate of gpu, 1 min ago".
    "" where there is none."""
    pool = next((each for each in pools if spec.pool and each.name == spec.pool.name), None)
    if pool is None or not pool.alive or (start := foretold(pool, spec)) is None:
        return ""
    waits = (start.expected - start.asked).total_seconds() > SOON
    when = f"at {moment(start.expected)} UTC" if waits else "at once"
    machines, devices = count(start.machines, "machine"), count(start.devices, "device")
    each = " each" if start.machines > 1 else ""
    return (
        f"A job of {machines} with {devices}{each} would start {when}, "
        f"by the estimate of {pool.name}, {ago(start.asked)}."
    )


def person_state(person: Person) -> str:
    """Whether somebody may come in."""
    if person.disabled:
        return "disabled"
    return "active" if person.joined else "invited"


def cleared(run: Run, zone: tzinfo | None = None) -> str | None:
    """What the project's rule of retention deleted of the run; None where nothing."""
    if run.cleared_at is None:
        return None
    day = run.cleared_at.astimezone(zone or UTC).date()
    return (
        f"The project's retention rule deleted the log, timelines and checkpoints on {day}. "
        "Figures, metrics, notes and files remain."
    )


def cluster_words(cluster: Cluster) -> str:
    """A cluster in a line: "4 servers × 4 V100, 16.0 GiB, 12.0 GB/s inside, 1.25 GB/s between"."""
    inner = cluster.levels[0]
    name, memory = cluster.device_names, _devices_words(cluster.each)
    if len(cluster.levels) == 1:
        return f"{inner.count} × {name}{memory}, {bandwidth(inner.bandwidth)}"
    outer = cluster.levels[1:]
    number = cluster.num_devices // inner.count
    between = ", ".join(bandwidth(level.bandwidth) for level in outer)
    return (
        f"{count(number, 'server')} × {inner.count} {name}{memory}, "
        f"{bandwidth(inner.bandwidth)} inside, {between} between"
    )


def _devices_words(devices: Sequence[Device]) -> str:
    """What devices have: ", 16.0 GiB each, speed 0.61 to 1"."""
    memories = sorted({device.memory for device in devices if device.memory})
    speeds = sorted({device.speed for device in devices})
    most = " to ".join(dict.fromkeys(map(size, (*memories[:1], *memories[-1:]))))
    speed = " to ".join(dict.fromkeys(f"{each:g}" for each in (speeds[0], speeds[-1])))
    return (f", {most} each" if memories else "") + (f", speed {speed}" if speeds != [1.0] else "")


def filter_words(wanted: RunFilter) -> str:
    """Which runs a filter lists: "failed · name, note or tag has lstm"; "all runs"."""
    bounds = [
        (name, f"{sign} {write(value)}")
        for name, sign, value, write in (
            ("accuracy", "≥", wanted.min_accuracy, percent),
            ("accuracy", "≤", wanted.max_accuracy, percent),
            (wanted.metric or "", "≥", wanted.min_metric, number),
            (wanted.metric or "", "≤", wanted.max_metric, number),
        )
        if value is not None
    ]
    said = {
        " or ".join(wanted.states): bool(wanted.states),
        f"{wanted.kind} runs": bool(wanted.kind),
        f"name, note or tag contains {wanted.text}": bool(wanted.text),
        f"model {wanted.definition_id}": wanted.definition_id is not None,
        f"plan {wanted.plan_id}": wanted.plan_id is not None,
        f"of {wanted.owner}": bool(wanted.owner),
        f"tag {wanted.tag}": bool(wanted.tag),
        "starred": wanted.starred,
        f"since {wanted.since:%Y-%m-%d}" if wanted.since else "": wanted.since is not None,
        f"before {wanted.until:%Y-%m-%d}" if wanted.until else "": wanted.until is not None,
        f"with {wanted.metric}": wanted.metric is not None and not bounds,
    }
    found = [words for words, holds in said.items() if holds]
    return " · ".join([*found, *(f"{name} {bound}" for name, bound in bounds)]) or "all runs"


def sweep_words(found: SweepReport) -> str:
    """How far a sweep is: "4 of 12 ended, 2 running, about 3 min left"."""
    there = sum(each.run_id is not None for each in found.results)
    said = [f"{found.num_ended} of {there} ended"]
    said += [f"{found.num_live} running"] if found.num_live else []
    if found.seconds_left:
        said.append(f"about {duration(found.seconds_left)} left")
    return ", ".join(said)
