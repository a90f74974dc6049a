"""The bundled example from its definition to a trained model: a call per step, or all of them."""

from threading import Event, Thread
from time import sleep

from app.log import logger
from backend.bootstrap import Backend
from backend.cluster.presets import local
from backend.errors import StageflowError
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.prediction.answer import Answer, rank
from backend.prediction.question import Question
from backend.runs.plans import StoredPlan
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import Run

MODEL = "vgg_digits"
MICROBATCH = 16
DEVICES = 2
EPOCHS, TARGET = 10, 0.97
PAUSE = 0.5  # seconds

log = logger("app")


def profiling(backend: Backend) -> tuple[ProfileSpec, str]:
    """What to ask for first, and its name; the model is kept from now on."""
    definition = backend.definitions.add_zoo(MODEL)
    return ProfileSpec(definition.id, microbatch=MICROBATCH), f"profile {definition.name}"


def plan(backend: Backend, profile_id: int, devices: int = DEVICES) -> tuple[StoredPlan, str]:
    """The best plan with several stages, kept, and the reason for it: the example shows a
    pipeline, even on a machine where replicas would be as good."""
    cluster = local(devices)
    profile = backend.profiles.get(profile_id).profile
    found = rank(Question(profile, cluster, planner="", schedule=PIPEDREAM.name))
    chosen = next((p for p in found if _is_pipeline(p)), found[0])
    kept = backend.plans.save(profile_id, cluster, chosen.prediction)
    return kept, chosen.reason


def _is_pipeline(answer: Answer) -> bool:
    return len(answer.prediction.plan.partition.stages) > 1


def training(
    backend: Backend, kept: StoredPlan, epochs: int = EPOCHS, target: float = TARGET
) -> tuple[TrainSpec, str]:
    """What to ask for last, and its name."""
    spec = TrainSpec(
        definition_id=backend.profiles.get(kept.profile_id).definition_id,
        plan=kept.prediction.plan,
        plan_id=kept.id,
        optimizer=OptimizerSpec("momentum", learning_rate=0.005),
        epochs=epochs,
        target_accuracy=target,
    )
    return spec, MODEL


class Tour:
    """All the steps, one after the other, in the background: whoever started it may leave the
    page. `runs` are the ids of what was asked for so far; `fault` is why it ended early."""

    def __init__(self, backend: Backend) -> None:
        self.runs: list[int] = []
        self.fault: StageflowError | None = None
        self._backend = backend
        self._stop = Event()
        self._thread = Thread(target=self._go, name="example", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def cancel(self) -> None:
        """End the run that works and ask for no other."""
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within that time."""
        self._thread.join(seconds)
        return not self.is_running

    def _go(self) -> None:
        try:
            profile_id = self._carried(*profiling(self._backend)).summary.profile_id
            if profile_id is not None and not self._stop.is_set():
                kept, _ = plan(self._backend, profile_id)
                self._carried(*training(self._backend, kept))
        except StageflowError as fault:
            self.fault = fault
        except Exception:
            log.exception("the example failed")
            self.fault = StageflowError("the example failed; the server's log says why")

    def _carried(self, spec: ProfileSpec | TrainSpec, name: str) -> Run:
        """The run once it has ended."""
        runs = self._backend.runs
        run = runs.submit(spec, name)
        self.runs.append(run.id)
        while not (run := runs.get(run.id)).state.is_final:
            if self._stop.is_set():
                runs.cancel(run.id)
            sleep(PAUSE)
        return run
