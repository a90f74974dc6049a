"""The JSON lines that a rank writes into its pipe of events, one event each.

What its code prints is log text. By hand, without that pipe, the lines are on standard output.
Whoever reads an event may store it: its numbers fit their columns, its texts have an end.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.runs.use import Use

PREFIX = '{"event":'
EVENT_PIPE = "EVENT_PIPE"
"""The variable that has the number of a rank's pipe of events."""
MAX_EVENT = 1 << 20
"""Characters of a line."""
MAX_NAME, MAX_TEXT = 200, 100_000
LAST_SECOND = 253402300799.0
"""Of the year 9999, the last that dates know."""

Count = Annotated[int, Field(ge=0, lt=2**31)]
Number = Annotated[float, Field(ge=-1e300, le=1e300)]
"""Finite, and so that means of many are."""
Moment = Annotated[float, Field(ge=0, le=LAST_SECOND)]
Seconds = Annotated[float, Field(ge=0, le=1e12)]
Name = Annotated[str, Field(max_length=MAX_NAME)]
Place = Annotated[str, Field(max_length=4096)]
Words = Annotated[str, Field(max_length=MAX_TEXT)]


@dataclass(frozen=True, slots=True)
class Started:
    """The rank has loaded everything and begins its work."""

    rank: Count
    event: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """`done` changes whenever the rank has finished an action; None where it has none. `use`: what
    its process used since the one before."""

    rank: Count
    done: Count | None = None
    use: Use | None = None
    event: Literal["heartbeat"] = "heartbeat"


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` units of `phase`."""

    phase: Name
    done: Count
    total: Count
    event: Literal["progress"] = "progress"


LOSS = "loss"
"""The mean of a minibatch in training."""
ACCURACY, HELD_OUT_LOSS, PERPLEXITY = "accuracy", "held-out loss", "perplexity"
"""Metrics of the held-out samples that a run tells by itself: the share of targets predicted right,
the mean loss per sample, and of texts e to the mean cross entropy per token."""


OF_STAGE = " of stage "


def of_stage(name: str, stage: int) -> str:
    """What a metric of the model's output is called where a stage's own head gave it."""
    return f"{name}{OF_STAGE}{stage}"


def stage_of(name: str) -> tuple[str, int] | None:
    """The metric and the stage of a name by `of_stage`; None of another name."""
    metric, found, stage = name.rpartition(OF_STAGE)
    return (metric, int(stage)) if found and stage.isascii() and stage.isdigit() else None


SENT, SENT_PLAIN = "bytes between stages", "plain bytes between stages"
"""Metrics of a run whose messages are coded, an epoch each: what all ranks have sent to other
stages in training, before headers, and what it would have been without codecs."""

SUMS_SENT, SUMS_PLAIN = "bytes of sums of gradients", "plain bytes of sums of gradients"
"""Metrics of a run whose replicas code the sums of their gradients, likewise."""

SITES_SENT, SITES_SUMS = "bytes between sites", "bytes of sums between sites"
SITES_SPREAD = "spread between sites"
OF_SITES = (SITES_SENT, SITES_SUMS, SITES_SPREAD)
"""Metrics of a run on several sites, an epoch each: what all ranks have sent to other sites, before
headers, what sums of the gradients after every update would have been, and how far the sites'
weights are from their mean at the end, as a share of it (root of the mean squares)."""

ENERGY = "joules per sample"
"""Metric of a run whose hosts count joules, an epoch each: of their processors, whatever ran on
them, and of the ranks' GPUs."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Values of one metric ("loss", "accuracy", "throughput", ...) at consecutive points.
    `steps` are minibatches since the start of the run, `times` Unix seconds."""

    name: Name
    steps: tuple[Count, ...]
    values: tuple[Number, ...]
    times: tuple[Moment, ...]
    epoch: Count = 0
    event: Literal["metrics"] = "metrics"

    def __post_init__(self) -> None:
        if not len(self.steps) == len(self.values) == len(self.times):
            raise ValueError("as many values and times as steps")


@dataclass(frozen=True, slots=True)
class Spans:
    """A file of spans (Arrow) of one rank and segment is ready in the job's folder: what it
    did, when it loaded the samples of its forwards, or when it copied for a checkpoint."""

    rank: Count
    segment: Count
    path: Place
    num_spans: Count
    kind: Literal["measured", "loading", "saving"] = "measured"
    event: Literal["spans"] = "spans"


@dataclass(frozen=True, slots=True)
class Clock:
    """How many seconds the clock of the rank's host is ahead of rank 0's, and most that this may
    be off; its spans are on rank 0's. Told by ranks of other hosts, anew for each segment."""

    rank: Count
    segment: Count
    seconds: Number
    error: Number
    event: Literal["clock"] = "clock"


@dataclass(frozen=True, slots=True)
class CoreUse:
    """What a rank had of the cores in a segment (see `CoreMeter`). On CPUs only.

    cpu, waited      seconds of the thread that computes: on a core; ready to run, while others had
                     the cores
    seconds          of the segment, by the clock
    process, busy    CPU seconds in it: of the rank's process; of all `cores` that it may use,
                     whoever used them
    load             processes of the machine that were ready to run, on average over the minute
                     before the segment
    host             number of the rank's host among the run's
    """

    rank: Count
    segment: Count
    cpu: Seconds
    waited: Seconds
    process: Seconds
    busy: Seconds
    seconds: Seconds
    cores: Count
    load: Seconds
    host: Count = 0
    event: Literal["cores"] = "cores"


@dataclass(frozen=True, slots=True)
class ProfileReady:
    """The profile (JSON of `Profile`) is ready in the job's folder."""

    path: Place
    event: Literal["profile"] = "profile"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file in the job's folder that is to be kept with the run."""

    name: Name
    path: Place
    event: Literal["artifact"] = "artifact"


@dataclass(frozen=True, slots=True)
class Saved:
    """One of the `num_files` files of a checkpoint is ready in the job's folder; `best` as in
    `Mark`.

    epoch, samples   how far the training was: whole epochs, and samples of the next one
    step             weight updates (minibatches) since the start of the run
    """

    rank: Count
    epoch: Count
    samples: Count
    step: Count
    path: Place
    num_files: Count
    best: bool = False
    event: Literal["saved"] = "saved"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rank 0 has chosen to take a checkpoint after so many microbatches of an epoch. `file` is
    the name of what says so in a job's folder."""

    rank: Count
    epoch: Count
    num_microbatches: Count
    event: Literal["chosen"] = "chosen"

    @property
    def file(self) -> str:
        return f"save-after-{self.epoch}-{self.num_microbatches}"


@dataclass(frozen=True, slots=True)
class Rescuing:
    """Another rank is lost: this one saves the state after its last update before it ends."""

    rank: int
    event: Literal["rescuing"] = "rescuing"


@dataclass(frozen=True, slots=True)
class RankError:
    """The rank cannot go on. Fields as in `RunError`."""

    rank: Count
    kind: Name
    message: Words
    advice: Words = ""
    detail: Words = ""
    event: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Finished:
    """The rank's work is done; `epochs` completed (0 for a profile)."""

    rank: Count
    epochs: Count = 0
    event: Literal["finished"] = "finished"


Event = (
    Started
    | Heartbeat
    | Progress
    | Metrics
    | Spans
    | Clock
    | CoreUse
    | ProfileReady
    | Artifact
    | Saved
    | Chosen
    | Rescuing
    | RankError
    | Finished
)


def write_line(event: Event) -> str:
    """Encode an event as one line, without the newline. `event` comes first."""
    body = to_json(type(event), event).decode()
    tag = f'"event":"{event.event}"'
    rest = body[1:-1].removesuffix(tag).rstrip(",")
    return "{" + tag + ("," + rest if rest else "") + "}"


def read_line(line: str) -> Event | None:
    """Decode one line; None where it is plain log text."""
    if not line.startswith(PREFIX):
        return None
    try:
        return from_json(Event, line)
    except InvalidInput:
        return None
