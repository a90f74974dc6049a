"""What a person asks for: profile this definition, or train it by this plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal

from backend.planning.plan import Plan
from backend.profiles.profile import Tracing
from backend.profiles.state_precision import StatePrecision
from backend.runs.events import ACCURACY, HELD_OUT_LOSS
from backend.runs.request.local_heads import LocalHead
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.sample_specs import PictureSpec, TableSpec
from backend.runs.request.text_spec import TextSpec


@dataclass(frozen=True, slots=True)
class DataSpec:
    """Which data to learn from, and how they are cut into microbatches.

    name      a form of `backend.runs.request.data_forms.FORMS`; empty = the definition's default
    samples   size of the synthetic training set
    path      file or folder on the node, inside one that its operator allows; for a Hugging
              Face data set also its name on the hub
    inputs    the columns (arrays) that go into the model; () = what the form takes by default
    targets   those that the loss compares with, likewise
    held_out  share of the samples to evaluate on, where the data have no part for that
    length    tokens of a sample of text; 0 = a line is a sample (without a tokenizer)
    last      what becomes of the samples that fill no whole round of microbatches: left out
              ("drop", others in every epoch), or in smaller microbatches ("keep")
    buckets   lengths to which samples of different lengths are padded, ascending
    text      how texts become samples
    pictures  what becomes of pictures, and
    table     of the columns of a table
    """

    name: str = ""
    samples: int = 1024
    path: str = ""
    inputs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    held_out: float = 0.2
    length: int = 64
    last: Literal["drop", "keep"] = "drop"
    buckets: tuple[int, ...] = ()
    text: TextSpec = field(default_factory=TextSpec)
    pictures: PictureSpec = field(default_factory=PictureSpec)
    table: TableSpec = field(default_factory=TableSpec)


@dataclass(frozen=True, slots=True)
class CheckpointSpec:
    """When the state of a training is kept: every so many weight updates, every so many
    seconds (0 = not by that count), and when somebody cancels. The newest `keep` stay, and with
    `best` that of the best evaluation, by the metric of `StopSpec`."""

    updates: int = 0
    seconds: float = 30.0
    keep: int = 3
    best: bool = False


@dataclass(frozen=True, slots=True)
class StopSpec:
    """When a training ends before its last epoch, beside its target; looked at after each
    evaluation. 0 = never for that reason.

    patience   evaluations after the best one so far
    metric     of held-out samples, that patience watches
    better     whether larger values of it are better; "" = known of the metrics that a run tells
               by itself
    updates    weight updates of the run; there is an evaluation after the last
    seconds    since the run started, waits between its attempts included
    """

    patience: int = 0
    metric: str = HELD_OUT_LOSS
    better: Literal["", "larger", "smaller"] = ""
    updates: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A cluster with a queue of its own carries the run: every attempt is a job there.

    name      of the pool
    nodes     machines of a job; the plan's devices are numbered through, machine by machine
    devices   of each machine; 0 = as many as the run needs of each
    seconds   after which the cluster may end a job; 0 = as long as the pool lets one run. A run
              that takes longer goes on in another job
    """

    name: str
    nodes: int = 1
    devices: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """Time every layer of a definition at `microbatch` samples; medians over `repetitions`.

    parameters   of the definition, where not its defaults
    granularity  of the layers: "fine", "blocks" (a block of modules is one layer), or "" for
                 what suits the definition's form
    further      more microbatch sizes, a profile each
    peak         nothing is run: sizes and operations are read off a model without weights, and
                 times are those of this device's roofline (a name of `backend.profiles.devices`)
                 in `precision`, or in that which the name says ("h100-tf32")
    by_parts     layers are made and timed one by one also where the whole model fits; where it
                 does not, they always are
    whole_nodes  no other run is on its node meanwhile
    pool         whose jobs carry it; None = the nodes' agents
    """

    definition_id: int
    microbatch: int = 16
    repetitions: int = 20
    parameters: dict[str, bool | int | float | str] = field(default_factory=dict)
    granularity: Literal["", "fine", "blocks"] = ""
    precision: Literal["float32", "bfloat16"] = "float32"
    further: tuple[int, ...] = ()
    peak: str = ""
    by_parts: bool = False
    whole_nodes: bool = False
    pool: PoolSpec | None = None
    kind: Literal["profile"] = "profile"


@dataclass(frozen=True, slots=True)
class TrainSpec:
    """Train a definition by a plan until its target or for `epochs`, whichever is first.

    target_accuracy, target_loss   of the held-out samples, at least and at most; one of them at
                 most. A perplexity p is a loss of ln p
    precision    of the compute: "bfloat16" and "float16" cast where torch's autocast does. In
                 float16 the loss is scaled, and updates with an overflow are left out
    state_precision   in which float32 weights, their gradients and the optimizer's state are kept;
                 other weights and buffers stay as the model has them
    planned_in   precision of the plan's profile, whose layers the plan cuts; "" = unknown
    tracing      as the plan's profile has it: how each rank finds the layers again
    elasticity   how much of the distance to the reference a pipeline gives up per averaging;
                 None = 1 / pipelines (AvgPipe)
    parameters, granularity   as in `ProfileSpec`; a plan brings those of its profile
    weights_id   a kept safetensors file to begin with; without it and the next two weights are
                 drawn by the seed
    weights_run  a run whose trained model to begin with
    weights_path   a safetensors file, or a folder of shards with their index, in a folder that
                 the node's STAGEFLOW_DATA names
    weights_partial   whether these weights may lack tensors of the model and have others
    checkpoint_id  a checkpoint, of whichever run, to go on from
    nodes        run on these, whose devices the plan numbers through; () = on any one
    whole_nodes  no other run is on its nodes meanwhile, whatever it uses of them
    replan       go on by another plan on the nodes that are left, where a lost one stays away
    evaluate     so many weight updates apart the held-out samples are evaluated, beside the end of
                 each epoch; 0 = there alone
    round        microbatches of which an epoch has a whole number, beside those of the plan
    pool         whose jobs carry it; None = the nodes' agents
    trackers     in which it is followed, by name; None = as settings say
    local_head   from which stages learn under a schedule with local losses
    emulate      seconds to wait for each second of compute in the plan's profile, in place of
                 computing (0 = compute); nothing is learned, and an epoch is as long as the
                 segment of a prediction
    """

    definition_id: int
    plan: Plan
    plan_id: int | None = None
    data: DataSpec = field(default_factory=DataSpec)
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec)
    epochs: int = 10
    target_accuracy: float | None = None
    seed: int = 0
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    planned_in: Literal["", "float32", "bfloat16"] = ""
    tracing: Tracing = ""
    elasticity: float | None = None
    parameters: dict[str, bool | int | float | str] = field(default_factory=dict)
    granularity: Literal["", "fine", "blocks"] = ""
    weights_id: int | None = None
    weights_run: int | None = None
    weights_path: str = ""
    weights_partial: bool = False
    checkpoints: CheckpointSpec = field(default_factory=CheckpointSpec)
    stop: StopSpec = field(default_factory=StopSpec)
    checkpoint_id: int | None = None
    nodes: tuple[str, ...] = ()
    emulate: float = 0.0
    evaluate: int = 0
    target_loss: float | None = None
    state_precision: StatePrecision = "float32"
    whole_nodes: bool = False
    replan: bool = True
    round: int = 1
    pool: PoolSpec | None = None
    trackers: tuple[str, ...] | None = None
    local_head: LocalHead = ""
    kind: Literal["train"] = "train"

    @property
    def has_target(self) -> bool:
        """Whether it may end by what the held-out samples say."""
        targets = (self.target_accuracy, self.target_loss)
        return targets != (None, None) or self.stop.patience > 0

    @property
    def needs_loss(self) -> bool:
        """Whether it may end by the loss of the held-out samples."""
        watched = self.stop.patience > 0 and self.stop.metric == HELD_OUT_LOSS
        return watched or self.target_loss is not None

    def is_met(self, score: Mapping[str, float]) -> bool:
        """Whether these metrics of the held-out samples, by name, meet the target."""
        if self.target_loss is not None:
            return score.get(HELD_OUT_LOSS, inf) <= self.target_loss
        if self.target_accuracy is not None:
            return score.get(ACCURACY, -inf) >= self.target_accuracy
        return False


@dataclass(frozen=True, slots=True)
class ImportedSpec:
    """A run of others, whose history was taken over: it cannot be launched.

    definition_id  the model beside whose runs it stands
    tracker, remote   what it is of ("MLflow"), and its number there; `url` of its page, "" without
                   one
    parameters     what it was asked for, by the names that it has there
    """

    definition_id: int
    tracker: str
    remote: str
    url: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    pool: None = None
    kind: Literal["imported"] = "imported"


RunSpec = ProfileSpec | TrainSpec
StoredSpec = ProfileSpec | TrainSpec | ImportedSpec
