"""Sweeps: many trainings asked for as one, looked at, and cancelled."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.errors import InvalidInput, StageflowError
from backend.people.rights import Right
from backend.planning.plan import Plan
from backend.runs.history.labels import MAX_NAME
from backend.runs.request.spec import TrainSpec
from backend.runs.sweeps.axes import varied
from backend.runs.sweeps.report import SweepReport, is_larger, report
from backend.runs.sweeps.sweep import Point, Sweep, SweepSpec
from backend.services.people.access import Access
from backend.services.runs.early_stopping import end_early
from backend.services.runs.runs import RunService
from backend.services.runs.stores import Stores
from backend.services.runs.survival import foreseen
from backend.storage.runs.sweeps import PlannedRun, SqlSweeps

CANCELLED = "cancelled with the sweep"


@dataclass(frozen=True)
class SweepService:
    """`listed` shows the chosen project's, `stores` all that the actor sees."""

    _stores: Stores
    _listed: SqlSweeps
    _runs: RunService
    _access: Access

    def start(self, spec: SweepSpec, name: str = "") -> Sweep:
        """Queue all of its runs, or none: one transaction makes them. Raises `InvalidInput` with
        the values of the first run that cannot be, `QuotaReached` and `NotFound`."""
        definition = self._stores.definitions.get(spec.base.definition_id)
        title = name.strip()[:MAX_NAME] or f"{definition.name} sweep"
        self._check(spec)
        planned = list(self._planned(spec, title))
        self._access.require(
            Right.EDIT, "launch", f"sweep {title}, {len(planned)} runs", definition.project_id
        )
        owner = self._access.actor.name
        sweep = self._stores.sweeps.add(title, spec, owner, planned)
        for each, made in zip(planned, sweep.run_ids, strict=True):
            self._runs.begin(made, each.spec)
        return sweep

    def checked(self, spec: SweepSpec) -> Sequence[TrainSpec]:
        """What each run would be asked for. Raises as `start`."""
        self._check(spec)
        return [each.spec for each in self._planned(spec, "")]

    def get(self, sweep_id: int) -> SweepReport:
        """How far it is. Raises `NotFound`."""
        return self._report(self._stores.sweeps.get(sweep_id))

    def list(self, limit: int = 100) -> Sequence[SweepReport]:
        """The newest first."""
        return [self._report(sweep) for sweep in self.newest(limit)]

    def newest(self, limit: int = 100) -> Sequence[Sweep]:
        """The newest first, without looking at their runs."""
        return self._listed.list(limit)

    def of_run(self, run_id: int) -> int | None:
        """The sweep that a run belongs to, if any."""
        return self._stores.sweeps.of_run(run_id)

    def cancel(self, sweep_id: int) -> SweepReport:
        """Cancel all of its runs that have not ended. Raises `NotFound`."""
        sweep = self._stores.sweeps.get(sweep_id)
        self._access.require(Right.EDIT, "cancel", f"sweep {sweep_id}", sweep.project_id)
        for run in self._stores.runs.several(sweep.run_ids):
            if not run.state.is_final:
                end_early(sweep, run, CANCELLED, self._stores)
        self._stores.sweeps.close(sweep_id)
        return self.get(sweep_id)

    def _check(self, spec: SweepSpec) -> None:
        base, early = spec.base, spec.early
        if early.first and (base.target_accuracy, base.target_loss) == (None, None):
            raise InvalidInput(
                "no run can reach a target, because none is given",
                "Give a target, or let all runs go on.",
            )
        if early.median and is_larger(early) is None:
            raise InvalidInput(
                f"it is not known which values of {early.metric!r} are better",
                "Say larger or smaller.",
            )

    def _planned(self, spec: SweepSpec, title: str) -> Iterator[PlannedRun]:
        for number, values in enumerate(spec.points(), start=1):
            try:
                made = self._runs.checked(varied(spec.base, values, self._plan))
            except StageflowError as fault:
                fault.args = (f"{point_words(values)}: {fault}",)
                raise
            assert isinstance(made, TrainSpec)
            planned = tuple(foreseen(made, self._stores))
            yield PlannedRun(values, f"{title} {number}", made, planned)

    def _plan(self, plan_id: int) -> Plan:
        return self._stores.plans.get(plan_id).prediction.plan

    def _report(self, sweep: Sweep) -> SweepReport:
        runs = {run.id: run for run in self._stores.runs.several(sweep.run_ids)}
        live = [run.id for run in runs.values() if run.state.is_live]
        told = self._stores.metrics.of_several(live, sweep.spec.early.metric)
        return report(sweep, runs, told, datetime.now(UTC))


def point_words(values: Point) -> str:
    """As "lr 0.01, schedule gpipe"."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in values.items()
    )
