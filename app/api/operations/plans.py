"""Plans: which layers run where, what is predicted of them, kept."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated

from pydantic import Field

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.labels import KeptLabels
from app.api.operation import router as operations
from app.api.proposals import Compared, Proposal, RefusedPlan, proposals
from app.server.searchers import THOROUGH
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster
from backend.comparison.aims import Aim, aim_of
from backend.comparison.plans import PlanDifferences
from backend.comparison.to_target import Histories, Target
from backend.errors import InvalidInput
from backend.pipeline.codecs.catalog import PLAIN
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.plan import Plan
from backend.planning.savings import MemorySaving
from backend.prediction.answer import by_order, compare, cut_by_hand, replies
from backend.prediction.predict import check_plan
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.profiles.state_precision import StatePrecision
from backend.runs.plans import StoredPlan

router = operations()

MAX_DEVICES = 256
MAX_BATCH = 4096


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """A kept plan in short; `model` by name. Seconds and samples per second as predicted."""

    id: int
    name: str
    profile_id: int
    model: str
    label: str
    schedule: str
    seconds_per_minibatch: float
    samples_per_second: float
    created_at: datetime
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What to plan. `cluster` is a cluster document (YAML or JSON), as the Plan page edits it,
    a preset with its servers ("dgx-h100:4") or the name of a kept one.

    planner      "best", "pipedream", ...; "" for all of them
    schedule     "" for the planner's own, and for any that `best` likes
    batch        microbatches per update
    memory       bytes of every device, in the place of the cluster's
    recompute    where a plan does not fit without, never, or always
    shard_state  over the replicas of a stage, likewise
    chunks       stages on a device under a schedule that interleaves
    update_times how many times the samples of `batch` microbatches an update may take
    search_on    the search may take thirty times its usual work (minutes)
    run_ahead    further microbatches in flight per hop under a schedule that never drains; null for
                 as many as simulation finds faster
    codec        of the messages between stages: "none", "bf16", "int8" ..., "auto" where it is
                 faster, or one for each cut of a plan by hand ("int8,none")
    sites        rule by which the cluster's sites exchange weights ("diloco:every=100"); "" for one
                 plan over all devices
    codec_of_sums   of the gradients of a stage's replicas ("bf16", "auto" where that is faster,
                 "dct:keep=0.005,every=1000"); "" for none
    split_channels  whether replicas split the linear and embedding layers that are faster so
    pipelines    most parallel pipelines of AvgPipe on the same devices
    device       the profile as this device would run it ("cluster": as the cluster's own, by what
                 its file says); `measured_on` is what it was measured on
    precision    of the compute there ("" = the profile's)
    also         profiles of the same model at other microbatch sizes
    took         seconds per microbatch of one pipeline on a device, and of each of two there
    state_precision   in which weights and the optimizer's state are kept
    optimizer    whose state counts as memory; "adamw+ema": with averaged weights beside
    cut          a partition by hand, such as "14x3-20x1", in the place of a planner
    order        the text of a program (as POST /programs takes it), whose order a plan keeps and is
                 run by, in the place of a planner
    target, target_loss   a held-out accuracy or loss: plans are ranked by the time to it
    energy_floor, money_floor   plans with at least this share of the most samples/s are ranked by
                 the energy or the money of a sample
    """

    profile_id: Id
    cluster: str
    schedule: str = PIPEDREAM.name
    batch: int = 4
    optimizer: str = "momentum"
    planner: str = ""
    memory: float | None = None
    recompute: MemorySaving = MemorySaving.AUTO
    chunks: int = 2
    pipelines: int = 3
    device: str = ""
    measured_on: str = ""
    precision: str = ""
    also: Annotated[tuple[Id, ...], Field(max_length=16)] = ()
    took: Annotated[tuple[float, float] | None, Field(alias="lanes_took")] = None
    cut: str = ""
    state_precision: StatePrecision = "float32"
    shard_state: MemorySaving = MemorySaving.AUTO
    update_times: int = 1
    search_on: bool = False
    run_ahead: int | None = None
    target: float | None = None
    target_loss: float | None = None
    energy_floor: float | None = None
    money_floor: float | None = None
    codec: str = PLAIN
    sites: str = ""
    order: str = ""
    codec_of_sums: str = ""
    split_channels: bool = False


@dataclass(frozen=True, slots=True)
class NewPlan:
    """`plan` is one of the proposals', or one made by hand; it is predicted again."""

    profile_id: Id
    cluster: str
    plan: Plan
    optimizer: str = "momentum"
    name: str = ""
    state_precision: StatePrecision = "float32"


@router.get("/plans")
def list_plans(
    caller: CurrentCaller, profile_id: Id | None = None, project_id: Id | None = None
) -> list[PlanEntry]:
    """The kept plans, newest first."""
    backend = caller.services(project_id)
    found = backend.plans.list(profile_id)
    models = backend.profiles.models({stored.profile_id for stored in found})
    return [_entry(stored, models[stored.profile_id]) for stored in found]


@router.post("/plans/propose")
def propose_plans(caller: CurrentCaller, asked: PlanRequest) -> list[Proposal]:
    """Every planner's plan for a profile on a cluster, simulated, best first; nothing is kept."""
    backend = caller.services()
    question, aim = _question(backend, asked), _aim(backend, asked)
    if asked.order:
        given = by_order(question, asked.order.encode(), asked.cut)
        return proposals([given], aim.histories)
    if asked.cut:
        return proposals([cut_by_hand(question, asked.cut)], aim.histories)
    ask = partial(THOROUGH.search, replies)
    return proposals(aim.rank(question, ask), aim.histories)


@router.post("/plans/compare")
def compare_plans(caller: CurrentCaller, asked: PlanRequest) -> Compared:
    """Every planner under every schedule (or the one that is asked for), best first; those without
    a plan with the reason."""
    backend = caller.services()
    aim = _aim(backend, asked)
    found = list(THOROUGH.search(compare, _question(backend, asked)))
    answers = [reply.answer for reply in found if reply.answer]
    refused = [RefusedPlan(r.planner, r.schedule, str(r.fault)) for r in found if r.fault]
    return Compared(proposals(aim.ranked(answers), aim.histories), refused)


@router.post("/plans/predict")
def predict_plan(caller: CurrentCaller, new: NewPlan) -> Prediction:
    """What a plan will do: one of the proposals', or one changed by hand. It is not kept."""
    return _predicted(caller.services(), new)[1]


@router.post("/plans", status_code=201)
def save_plan(caller: CurrentCaller, new: NewPlan) -> StoredPlan:
    """Predict a plan and keep it."""
    backend = caller.services()
    cluster, prediction = _predicted(backend, new)
    return backend.plans.save(new.profile_id, cluster, prediction, new.name)


@router.get("/plans/{id:int}")
def get_plan(caller: CurrentCaller, id: Id) -> StoredPlan:
    """One kept plan with its prediction."""
    return caller.services().plans.get(id)


@router.get("/plans/{id:int}/differences/{other:int}")
def get_plan_differences(caller: CurrentCaller, id: Id, other: Id) -> PlanDifferences:
    """What differs between two kept plans: figures, layers that moved, stages."""
    return caller.services().plans.differences(id, other)


@router.patch("/plans/{id:int}")
def label_plan(caller: CurrentCaller, id: Id, new: KeptLabels) -> StoredPlan:
    """Change the name, note or tags of a kept plan. 409 where the project has the name."""
    return caller.services().plans.label(id, new.change)


@router.delete("/plans/{id:int}")
def delete_plan(caller: CurrentCaller, id: Id) -> StoredPlan:
    """Delete a kept plan for good; the answer is what it was. 409 where it has runs."""
    return caller.services().plans.delete(id)


def _entry(stored: StoredPlan, model: str) -> PlanEntry:
    found = stored.prediction
    return PlanEntry(
        stored.id,
        stored.name,
        stored.profile_id,
        model,
        stored.plan.label,
        stored.plan.schedule,
        found.seconds_per_minibatch,
        found.samples_per_second,
        stored.created_at,
        stored.tags,
    )


def _question(backend: Backend, asked: PlanRequest) -> Question:
    _check_batch(asked.batch)
    question = Question(
        backend.profiles.get(asked.profile_id).profile,
        read_small_cluster(backend, asked.cluster),
        planner=asked.planner,
        schedule=asked.schedule,
        batch=asked.batch,
        optimizer=asked.optimizer,
        recompute=asked.recompute,
        shard_state=asked.shard_state,
        chunks=asked.chunks,
        pipelines=asked.pipelines,
        update_times=asked.update_times,
        search_on=asked.search_on,
        run_ahead=asked.run_ahead,
        codec=asked.codec,
        sites=asked.sites,
        codec_of_sums=asked.codec_of_sums,
        split_channels=asked.split_channels,
        further=tuple(backend.profiles.get(number).profile for number in asked.also),
    )
    return question.under(
        asked.memory,
        asked.device,
        asked.measured_on,
        asked.precision,
        asked.took,
        asked.state_precision,
    )


def _aim(backend: Backend, asked: PlanRequest) -> Aim:
    def learnt(target: Target) -> Histories:
        return backend.runs.learnt(backend.profiles.get(asked.profile_id).definition_id, target)

    floors = asked.energy_floor, asked.money_floor
    return aim_of(asked.target, asked.target_loss, *floors, learnt)


def _predicted(backend: Backend, new: NewPlan) -> tuple[Cluster, Prediction]:
    cluster = read_small_cluster(backend, new.cluster)
    profile = backend.profiles.get(new.profile_id).profile
    _check_batch(new.plan.batch)
    check_plan(profile, cluster, new.plan)
    question = Question(profile, cluster, optimizer=new.optimizer)
    return cluster, question.under(state_precision=new.state_precision).predict(new.plan)


def read_small_cluster(backend: Backend, text: str) -> Cluster:
    """Raises `InvalidInput`, also for one that is too large to be planned for here."""
    cluster = backend.clusters.read(text)
    if cluster.num_devices > MAX_DEVICES:
        raise InvalidInput(
            f"the cluster has {cluster.num_devices} devices",
            f"Over the API {MAX_DEVICES} are the most that are planned for.",
        )
    return cluster


def _check_batch(batch: int) -> None:
    if not 1 <= batch <= MAX_BATCH:
        raise InvalidInput(f"batch is {batch}", f"Give batch 1 to {MAX_BATCH}.")
