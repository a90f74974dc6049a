"""A run as it is stored and shown."""

from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite

from backend.errors import InvalidInput
from backend.people.project import DEFAULT_PROJECT
from backend.prediction.fallback import Fallback
from backend.runs.events import ACCURACY, Clock, CoreUse
from backend.runs.request.spec import ImportedSpec, ProfileSpec, RunSpec, StoredSpec
from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run failed: `kind` for filters ("ModelRaised", "LossNotFinite", "DiskFull",
    "AgentLost", ...), `message` and `advice` for people, `detail` (a traceback of the
    user's code) folded away on the page."""

    kind: str
    message: str
    advice: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """`done` of `total` units of `phase` ("load", "warm up", "layers", "train", "evaluate")."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What is known at the end (or so far): None where it does not apply.

    accuracy               on held-out data, last evaluation
    loss                   mean of the last epoch
    seconds_per_minibatch  measured, steady state
    bubble                 measured share of rank time spent waiting
    profile_id             the profile that a profiling run made
    seconds_to_target      from the start of the run to the first evaluation that met its target
    metrics                the last value of each further metric, by name: loss and perplexity of
                           held-out data, those of the definition
    clocks                 of the ranks on other hosts than rank 0's, in the last segment
    cores                  what each rank had of the cores, in the last segment; () on GPUs and
                           emulated devices
    """

    accuracy: float | None = None
    loss: float | None = None
    epochs: int = 0
    seconds_per_minibatch: float | None = None
    samples_per_second: float | None = None
    bubble: float | None = None
    profile_id: int | None = None
    seconds_to_target: float | None = None
    clocks: tuple[Clock, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)
    cores: tuple[CoreUse, ...] = ()

    @property
    def reached(self) -> dict[str, float]:
        """The metrics that the run can be found by: those of above that are known and finite."""
        known = {ACCURACY: self.accuracy, "loss": self.loss, **self.metrics}
        return {n: value for n, value in known.items() if value is not None and isfinite(value)}


@dataclass(frozen=True, slots=True)
class Run:
    """`sandbox` is the level at which its ranks were started; None before that. `origin_id`
    is the run that this one was launched again from, as it was or with changes. `cleared_at`
    is when its project's rule took its log, timelines and checkpoints away. `stacks_asked`: how
    often somebody asked for the stacks of its ranks."""

    id: int
    name: str
    spec: StoredSpec
    state: RunState
    attempt: int
    node: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: RunProgress | None
    summary: RunSummary
    error: RunError | None
    cancel_requested: bool
    sandbox: SandboxLevel | None = None
    owner: str = ""
    starred: bool = False
    note: str = ""
    tags: tuple[str, ...] = ()
    origin_id: int | None = None
    project_id: int = DEFAULT_PROJECT
    cleared_at: datetime | None = None
    fallbacks: tuple[Fallback, ...] = ()
    stacks_asked: int = 0

    @property
    def asked(self) -> RunSpec:
        """What is to be done. Raises `InvalidInput` of a run that was imported: nobody here did
        anything."""
        if isinstance(self.spec, ImportedSpec):
            raise InvalidInput(
                f"run {self.id} was imported: it cannot be launched", "Launch a plan of its model."
            )
        return self.spec

    @property
    def is_training(self) -> bool:
        """A training of here or of others: it has curves to be laid over another's."""
        return not isinstance(self.spec, ProfileSpec)

    @property
    def kind(self) -> str:
        return self.spec.kind
