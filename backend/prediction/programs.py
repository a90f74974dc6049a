"""Programs of plans as files, and programs from files, verified and run on a clock."""

from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.pipeline.bubbles import bubble
from backend.pipeline.program import Program
from backend.pipeline.rules.faults import Fault
from backend.pipeline.shape import Shape
from backend.pipeline.timeline import Timeline
from backend.pipeline.verify import verify
from backend.planning.balanced import even_stops
from backend.planning.memory import memory_bytes
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import check_plan, described, predicted_program
from backend.prediction.prediction import Prediction
from backend.prediction.segment import Segment
from backend.prediction.shapes import microbatch_unit, steady_shape
from backend.prediction.steady import on_cluster
from backend.prediction.trainers.forms import PlanFormat, TrainerFormat
from backend.profiles.profile import Profile

IMPORTED = "imported"
"""Who made a plan whose program was read from a file."""
MOST_ACTIONS = 100_000
"""More are refused where others wait for the answer: verifying them takes seconds."""


def exported(
    profile: Profile, cluster: Cluster, plan: Plan, form: PlanFormat, num_microbatches: int = 0
) -> bytes:
    """The program of a segment of `plan` in `form`, or the plan as another trainer reads it. 0
    microbatches are as many as the plan is predicted on, or one batch where the form holds no
    more. Raises as `predicted_program`, and `InvalidInput` for what the form cannot say."""
    if isinstance(form, TrainerFormat):
        check_plan(profile, cluster, plan)
        if num_microbatches not in (0, plan.batch):
            raise InvalidInput(
                f"{form.name} describes one update, which is {plan.batch} microbatches here, not "
                f"{num_microbatches}",
                "Plan with another batch, or leave the number out.",
            )
        return form.of(profile, plan)
    usual = microbatch_unit(plan) if form.one_batch else steady_shape(plan).num_microbatches
    program, timeline = predicted_program(profile, cluster, plan, num_microbatches or usual)
    return form.write(program, timeline)


@dataclass(frozen=True, slots=True)
class Imported:
    """`faults` say what is wrong with the program; only one without faults is simulated.

    prediction  as of a plan, but of the whole program: filling and draining count too
    """

    program: Program
    faults: tuple[Fault, ...]
    timeline: Timeline | None = None
    prediction: Prediction | None = None


def check_size(program: Program) -> Program:
    """The same program; raises `InvalidInput` where it has more than `MOST_ACTIONS`."""
    if program.num_actions > MOST_ACTIONS:
        raise InvalidInput(
            f"the program has {program.num_actions:,} actions",
            f"Here {MOST_ACTIONS:,} are taken at most; stageflow program import takes more.",
        )
    return program


def examined(
    program: Program, profile: Profile, cluster: Cluster, optimizer: str = "momentum"
) -> Imported:
    """`program` on the profile's layers, cut into stages of about equal compute, on the
    cluster's devices in their order. Raises `InvalidInput` where it has more stages than the
    profile has layers, or more ranks than the cluster has devices."""
    plan = plan_of(program, profile, cluster)
    if faults := verify(program):
        return Imported(program, faults)
    shape = program.shape
    timeline, durations = on_cluster(program, profile, cluster, plan)
    seconds = timeline.makespan * shape.batch / shape.num_microbatches
    memory = memory_bytes(profile, plan, shape, optimizer)
    prediction = described(plan, Segment(program), bubble(timeline), durations, seconds, memory)
    return Imported(program, (), timeline, prediction)


def plan_of(program: Program, profile: Profile, cluster: Cluster) -> Plan:
    """The plan that `program` would be of. Raises `InvalidInput` as `examined` does."""
    shape = program.shape
    if shape.num_stages > len(profile.layers) or shape.num_devices > cluster.num_devices:
        raise InvalidInput(
            f"the program has {shape.num_stages} stages on {shape.num_devices} devices, the "
            f"profile {len(profile.layers)} layers, the cluster {cluster.num_devices} devices",
            "Choose a profile with a layer for each stage, and a cluster with enough devices.",
        )
    return Plan(
        IMPORTED,
        _partition(shape, profile),
        program.schedule,
        profile.microbatch,
        shape.batch,
        shape.recompute,
        shape.num_pipelines,
        shape.advance,
        run_ahead=shape.run_ahead,
    )


def _partition(shape: Shape, profile: Profile) -> Partition:
    stops = even_stops(profile, shape.num_stages)
    places = [shape.group_of(stage) for stage in range(shape.num_stages)]
    firsts = (0, *stops[:-1])
    stages = (Stage(*each) for each in zip(firsts, stops, places, strict=True))
    return Partition(tuple(stages), chunks=shape.chunks, placement=shape.placement)
