"""Sweeps: trainings over values of some settings, asked for as one."""

from dataclasses import dataclass

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.operation import router as operations
from backend.runs.sweeps.report import SweepReport
from backend.runs.sweeps.sweep import SweepSpec

router = operations()


@dataclass(frozen=True, slots=True)
class NewSweep:
    """`spec` says which training, which settings vary, and when runs end early."""

    spec: SweepSpec
    name: str = ""


@router.get("/sweeps")
def list_sweeps(caller: CurrentCaller, project_id: Id | None = None) -> list[SweepReport]:
    """The newest 100 first, with how far each is."""
    return list(caller.services(project_id).sweeps.list())


@router.post("/sweeps", status_code=201)
def start_sweep(caller: CurrentCaller, new: NewSweep) -> SweepReport:
    """Queue up to 300 trainings with these values, or none of them."""
    sweeps = caller.services().sweeps
    return sweeps.get(sweeps.start(new.spec, new.name).id)


@router.get("/sweeps/{id:int}")
def get_sweep(caller: CurrentCaller, id: Id) -> SweepReport:
    """The runs of a sweep with values and results, the best one, and the time that is left."""
    return caller.services().sweeps.get(id)


@router.post("/sweeps/{id:int}/cancel")
def cancel_sweep(caller: CurrentCaller, id: Id) -> SweepReport:
    """Cancel all of its runs that have not ended."""
    return caller.services().sweeps.cancel(id)
