"""Plans: which layers run where, what is predicted of them, kept."""

from dataclasses import dataclass
from datetime import datetime

from app.api.fields import Id
from app.api.operation import Call, Operation
from backend.cluster.cluster import Cluster
from backend.cluster.document import read_cluster
from backend.errors import InvalidInput
from backend.planning.plan import Plan
from backend.prediction.predict import check_plan, predict
from backend.prediction.prediction import Prediction
from backend.prediction.propose import Proposal, propose
from backend.runs.plans import StoredPlan

MAX_DEVICES = 256
MAX_BATCH = 4096


@dataclass(frozen=True, slots=True)
class PlanQuery:
    """`profile_id`: only the plans made from that profile; `project_id`: of that project."""

    profile_id: Id | None = None
    project_id: Id | None = None


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """A kept plan in short. Seconds and samples per second as predicted."""

    id: int
    name: str
    profile_id: int
    label: str
    schedule: str
    seconds_per_minibatch: float
    samples_per_second: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """`cluster` is a cluster document (YAML or JSON), as the Plan page edits it."""

    profile_id: Id
    cluster: str
    schedule: str = "pipedream"
    batch: int = 4
    optimizer: str = "momentum"


@dataclass(frozen=True, slots=True)
class NewPlan:
    """`plan` is one of the proposals', or one made by hand; it is predicted again."""

    profile_id: Id
    cluster: str
    plan: Plan
    optimizer: str = "momentum"
    name: str = ""


def _entry(stored: StoredPlan) -> PlanEntry:
    found = stored.prediction
    return PlanEntry(
        stored.id,
        stored.name,
        stored.profile_id,
        stored.plan.label,
        stored.plan.schedule,
        found.seconds_per_minibatch,
        found.samples_per_second,
        stored.created_at,
    )


def _list(call: Call) -> list[PlanEntry]:
    asked: PlanQuery = call.query
    found = call.within(asked.project_id).plans.list(asked.profile_id)
    return [_entry(stored) for stored in found]


def _propose(call: Call) -> list[Proposal]:
    asked: Question = call.body
    profile = call.backend.profiles.get(asked.profile_id).profile
    _check_batch(asked.batch)
    return propose(
        profile,
        _cluster(asked.cluster),
        schedule=asked.schedule,
        batch=asked.batch,
        optimizer=asked.optimizer,
    )


def _predict(call: Call) -> Prediction:
    new: NewPlan = call.body
    return _predicted(call, new, _cluster(new.cluster))


def _save(call: Call) -> StoredPlan:
    new: NewPlan = call.body
    cluster = _cluster(new.cluster)
    prediction = _predicted(call, new, cluster)
    return call.backend.plans.save(new.profile_id, cluster, prediction, new.name)


def _predicted(call: Call, new: NewPlan, cluster: Cluster) -> Prediction:
    profile = call.backend.profiles.get(new.profile_id).profile
    _check_batch(new.plan.batch)
    check_plan(profile, cluster, new.plan)
    return predict(profile, cluster, new.plan, new.optimizer)


def _cluster(text: str) -> Cluster:
    cluster = read_cluster(text)
    if cluster.num_devices > MAX_DEVICES:
        raise InvalidInput(
            f"the cluster has {cluster.num_devices} devices",
            f"Over the API {MAX_DEVICES} are planned for at most.",
        )
    return cluster


def _check_batch(batch: int) -> None:
    if not 1 <= batch <= MAX_BATCH:
        raise InvalidInput(f"batch is {batch}", f"Give batch 1 to {MAX_BATCH}.")


OPERATIONS = (
    Operation(
        "list_plans",
        "GET",
        "/plans",
        "The kept plans, newest first.",
        _list,
        list[PlanEntry],
        query=PlanQuery,
    ),
    Operation(
        "propose_plans",
        "POST",
        "/plans/propose",
        "Every planner's plan for a profile on a cluster, simulated, best first; nothing is kept.",
        _propose,
        list[Proposal],
        body=Question,
    ),
    Operation(
        "predict_plan",
        "POST",
        "/plans/predict",
        "What a plan will do: one of the proposals', or one changed by hand. It is not kept.",
        _predict,
        Prediction,
        body=NewPlan,
    ),
    Operation(
        "save_plan",
        "POST",
        "/plans",
        "Predict a plan and keep it.",
        _save,
        StoredPlan,
        body=NewPlan,
        status=201,
    ),
    Operation(
        "get_plan",
        "GET",
        "/plans/{id:int}",
        "One kept plan with its prediction.",
        lambda call: call.backend.plans.get(call.id),
        StoredPlan,
    ),
)
