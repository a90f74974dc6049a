"""Plans in a notebook: by the engine of pages, API and commands, without a server."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.exports.answers import HEAD, row
from app.exports.stage_rows import stage_rows
from app.formats import between, count, rate, seconds
from app.naming import plan_name, planner_name, rank_names
from app.notebook.profiles import NotebookProfile, read_profile
from app.notebook.tables import by_columns, heading, paragraphs, table
from backend.cluster.cluster import Cluster
from backend.cluster.document import read_cluster
from backend.cluster.presets import preset, this_machine
from backend.errors import InvalidInput
from backend.pipeline.codecs.catalog import PLAIN
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.cuts import BY_HAND
from backend.planning.plan import Plan
from backend.planning.savings import MemorySaving
from backend.prediction.answer import Answer, by_hand, by_order, cut_by_hand, rank
from backend.prediction.predict import predicted_program
from backend.prediction.prediction import Prediction
from backend.prediction.programs import exported
from backend.prediction.question import Question
from backend.prediction.shapes import steady_shape
from backend.prediction.trainers.forms import plan_form
from backend.profiles.profile import Profile
from backend.whole import is_whole

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from app.notebook.timelines import NotebookTimeline

Given = NotebookProfile | Profile | str | Path
Where = Cluster | int | str | Path


@dataclass(frozen=True, eq=False)
class NotebookPlan:
    """A plan with what is predicted of it (`answer`); `profile_id` of a profile that a server
    keeps."""

    question: Question
    answer: Answer
    others: tuple[Answer, ...] = ()
    profile_id: int | None = None

    @property
    def plan(self) -> Plan:
        return self.answer.prediction.plan

    @property
    def prediction(self) -> Prediction:
        return self.answer.prediction

    @cached_property
    def alternatives(self) -> tuple["NotebookPlan", ...]:
        """What the other planners say, the fastest first."""
        return tuple(
            replace(self, answer=each, others=tuple(o for o in self._all if o is not each))
            for each in self._all
            if each is not self.answer
        )

    @property
    def _all(self) -> tuple[Answer, ...]:
        answers = (self.answer, *self.others)
        return tuple(sorted(answers, key=lambda each: -each.prediction.samples_per_second))

    def timeline(self, microbatches: int = 0) -> "NotebookTimeline":
        """Its program from an empty pipeline to an empty one, on a segment of so many microbatches
        (0 = as many as it was predicted on). Raises `InvalidInput` where these are too few."""
        from app.charts.bars import bars_of
        from app.notebook.timelines import NotebookTimeline

        number = microbatches or steady_shape(self.plan).num_microbatches
        profile = self.question.profile_of(self.plan)
        _, found = predicted_program(profile, self.question.cluster, self.plan, number)
        line = f"predicted · {number} microbatches · {rate(self.prediction.samples_per_second)}"
        title = f"{profile.name} · {plan_name(self.plan)}"
        return NotebookTimeline(title, line, bars_of(found), rank_names(self.plan))

    def memory(self) -> "go.Figure":
        """The chart of the Plan page: what each stage's devices hold, beside their limit."""
        from app.charts.memory import memory
        from app.notebook.figures import inked
        from backend.planning.memory import replica_parts
        from backend.planning.room import least_room

        plan, question = self.plan, self.question
        held = replica_parts(
            question.at(plan.microbatch), plan, steady_shape(plan), question.optimizer
        )
        rooms = least_room(held, question.cluster, plan.partition)
        found = inked(memory(plan.partition, rooms))
        found.update_layout(showlegend=True, margin={"t": 36}, height=found.layout.height + 28)
        return found

    def stages(self) -> dict[str, list[Any]]:
        """The stages in figures, by columns: as a data frame takes them."""
        profile = self.question.profile_of(self.plan).in_order(self.plan.partition.order)
        return stage_rows(profile, self.question.cluster, self.prediction)

    def export(self, format: str, path: str | Path | None = None) -> bytes:
        """The program (text, json, csv, trace) or the plan as another trainer reads it (torch,
        torchtitan, megatron, deepspeed), written to `path` where one is given. Raises
        `InvalidInput` with what cannot be said there."""
        question = self.question
        profile = question.profile_of(self.plan)
        data = exported(profile, question.cluster, self.plan, plan_form(format))
        if path is not None:
            Path(path).write_bytes(data)
        return data

    def __repr__(self) -> str:
        found = self.prediction
        return (
            f"<plan {plan_name(self.plan)} ({planner_name(self.plan.planner)}): "
            f"{rate(found.samples_per_second)}, {seconds(found.seconds_per_minibatch)} per "
            "minibatch>"
        )

    @property
    def _likely(self) -> str:
        likely = between(self.prediction.seconds_range, seconds)
        return f"Nine of ten runs are expected to take {likely} per minibatch." if likely else ""

    def _repr_html_(self) -> str:
        question = self.question
        on = f"{question.profile.name} on {count(question.cluster.num_devices, 'device')}"
        ranked = table(HEAD, map(row, self._all))
        return (
            heading(plan_name(self.plan), on)
            + ranked
            + paragraphs((self._likely, *self.answer.reasons))
            + by_columns(self.stages(), "Stages")
        )


def plan(
    profile: Given,
    cluster: Where = 2,
    *,
    planner: str = "",
    schedule: str = "",
    microbatches: int = 4,
    cut: str = "",
    order: str | Path = "",
    optimizer: str = "momentum",
    recompute: str = "auto",
    shard_state: str = "auto",
    chunks: int = 2,
    pipelines: int = 3,
    update_times: int = 1,
    run_ahead: int | None = None,
    codec: str = PLAIN,
    sites: str = "",
    codec_of_sums: str = "",
    split_channels: bool = False,
    also: Sequence[Given] = (),
    **conditions: Any,
) -> NotebookPlan:
    """The fastest plan; the others are its `alternatives`. As `stageflow plan` asks.

    cluster     a number of this machine's cores, a preset ("cluster-a:4"), a path or the text of
                a cluster document, or a `Cluster`
    planner     "" for all; schedule "" for the planner's own
    microbatches   per update of a schedule that drains
    cut         by hand in the place of a planner: "14x3-20x1"
    order       by the order of actions in a file: its path
    run_ahead   further microbatches in flight per hop; None for what simulation finds faster
    codec       of the messages between stages ("int8"), or "auto"
    sites       rule by which the cluster's sites exchange weights ("diloco:every=100")
    codec_of_sums   of the gradients of replicas ("bf16", "auto", "dct:keep=0.005")
    split_channels  whether replicas split the linear and embedding layers that are faster so
    also        profiles of the model at other microbatch sizes
    conditions  memory (bytes), device, measured_on, precision, took, state_precision

    Raises `PlanDoesNotFit` and `InvalidInput`.
    """
    given = _profile(profile)
    question = Question(
        given.profile,
        cluster_of(cluster),
        planner=planner,
        schedule=schedule,
        batch=microbatches,
        optimizer=optimizer,
        recompute=_saving("recompute", recompute),
        shard_state=_saving("shard_state", shard_state),
        chunks=chunks,
        pipelines=pipelines,
        update_times=update_times,
        run_ahead=run_ahead,
        codec=codec,
        sites=sites,
        codec_of_sums=codec_of_sums,
        split_channels=split_channels,
        further=tuple(_profile(each).profile for each in also),
    ).under(**conditions)
    if order:
        best, others = by_order(question, Path(order).read_bytes(), cut), []
    else:
        best, *others = [cut_by_hand(question, cut)] if cut else rank(question)
    kept = None if conditions.get("device") else given.id
    return NotebookPlan(question, best, tuple(others), kept)


def simulate(plan: NotebookPlan, schedule: str = "", microbatches: int = 0) -> NotebookPlan:
    """The same partition under another schedule, or with another number of microbatches per
    update (where the schedule drains). Raises `InvalidInput`."""
    name = schedule or plan.plan.schedule
    if not schedule_named(name).batched and microbatches > 1:
        raise InvalidInput(
            f"schedule {name!r} updates after every microbatch, not after {microbatches}",
            "Leave the number out, or choose a schedule that drains, such as 1f1b-flush.",
        )
    usual = plan.plan.batch if plan.plan.batch > 1 else plan.question.batch
    changed = replace(plan.plan.under(name, microbatches or usual), planner=BY_HAND)
    return replace(plan, answer=by_hand(plan.question, changed), others=())


def cluster_of(given: Where) -> Cluster:
    """Raises `InvalidInput`."""
    if isinstance(given, Cluster):
        return given
    if isinstance(given, int):
        return this_machine(given)
    text = str(given)
    name, _, rest = text.partition(":")
    if "\n" in text:
        return read_cluster(text)
    if Path(text).is_file():
        return read_cluster(Path(text).read_text())
    if is_whole(rest):
        return preset(name, int(rest))
    raise InvalidInput(
        f"there is no file {text[:200]!r}", "Give a preset such as dgx-h100:4, a path, or a number."
    )


def _profile(given: Given) -> NotebookProfile:
    if isinstance(given, NotebookProfile):
        return given
    return NotebookProfile(given) if isinstance(given, Profile) else read_profile(given)


def _saving(name: str, word: str) -> MemorySaving:
    try:
        return MemorySaving(word)
    except ValueError:
        known = ", ".join(each.value for each in MemorySaving)
        raise InvalidInput(f"{name} is {word!r}", f"Choose one of: {known}.") from None
