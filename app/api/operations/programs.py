"""Programs: what every rank of a plan does, taken away in a form; an order brought from outside."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Response
from pydantic import Field

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.files import download, file_of
from app.api.operation import router as operations
from app.api.operations.plans import read_small_cluster
from app.api.operations.profiles import TraceText, traced
from backend.comparison.traced_runs import TracedRun, traced_run
from backend.pipeline.exchange.forms import read_any
from backend.pipeline.shape import Shape
from backend.prediction.prediction import Prediction
from backend.prediction.programs import Imported, check_size, examined, exported
from backend.prediction.trainers.forms import PLAN_FORMS, plan_form

router = operations()

MOST_MICROBATCHES = 4096
Count = Annotated[int, Field(ge=0, le=MOST_MICROBATCHES)]


@dataclass(frozen=True, slots=True)
class NewProgram:
    """`program` is the text of a file in any of the forms; it is run on the profile's layers,
    cut into stages of about equal compute, on the devices of the `cluster` document."""

    profile_id: Id
    cluster: str
    program: str
    optimizer: str = "momentum"


@dataclass(frozen=True, slots=True)
class RankTraces:
    """One for each rank of the plan, rank 0 first."""

    traces: tuple[TraceText, ...]


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """Action `index` of `rank` (null: what is missing there), the rule, and a sentence."""

    rank: int
    index: int | None
    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Examined:
    """`prediction` and `makespan` (seconds) are null where the program has faults."""

    schedule: str
    shape: Shape
    num_actions: int
    faults: tuple[BrokenRule, ...]
    makespan: float | None
    prediction: Prediction | None


@router.get(
    "/plans/{id:int}/program",
    **file_of(*sorted({each.media for each in PLAN_FORMS.values()})),
)
def export_program(
    caller: CurrentCaller, id: Id, format: str = "text", microbatches: Count = 0
) -> Response:
    """The program of a kept plan: text, json, csv (torch's) or trace (Chrome's, of its prediction);
    or the plan as other trainers read it: torch, torchtitan, megatron or deepspeed. `microbatches`
    of the segment; 0 = as many as the plan was predicted on."""
    form, backend = plan_form(format), caller.services()
    kept = backend.plans.get(id)
    profile = backend.profiles.get(kept.profile_id).profile
    data = exported(profile, kept.cluster, kept.plan, form, microbatches)
    return download(data, f"plan-{kept.id}-program{form.suffix}", form.media)


@router.post("/plans/{id:int}/traces")
def compare_traces(caller: CurrentCaller, id: Id, given: RankTraces) -> TracedRun:
    """Lay a run elsewhere beside the prediction of a kept plan; nothing is kept."""
    backend = caller.services()
    kept = backend.plans.get(id)
    profile = backend.profiles.get(kept.profile_id).profile
    return traced_run([*map(traced, given.traces)], profile, kept.cluster, kept.plan)[0]


@router.post("/programs")
def examine_program(caller: CurrentCaller, new: NewProgram) -> Examined:
    """Verify a program from a file and simulate it; nothing is kept."""
    backend = caller.services()
    profile = backend.profiles.get(new.profile_id).profile
    program = check_size(read_any(new.program.encode()))
    cluster = read_small_cluster(backend, new.cluster)
    return _told(examined(program, profile, cluster, new.optimizer))


def _told(found: Imported) -> Examined:
    return Examined(
        found.program.schedule,
        found.program.shape,
        found.program.num_actions,
        tuple(BrokenRule(f.rank, f.index, f.rule.value, f.text) for f in found.faults),
        found.timeline.makespan if found.timeline else None,
        found.prediction,
    )
