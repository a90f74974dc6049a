"""The JSON lines that a rank prints on standard output, one event each.

A line that does not start with `PREFIX` is log text (the user's own print, a warning).
"""

from dataclasses import dataclass
from typing import Literal

from backend.codec import from_json, to_json
from backend.errors import InvalidInput

PREFIX = '{"event":'


@dataclass(frozen=True, slots=True)
class Started:
    """The rank has loaded everything and begins its work."""

    rank: int
    event: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """`done` changes whenever the rank has finished an action; None where it has none."""

    rank: int
    done: int | None = None
    event: Literal["heartbeat"] = "heartbeat"


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` units of `phase`."""

    phase: str
    done: int
    total: int
    event: Literal["progress"] = "progress"


ACCURACY, HELD_OUT_LOSS, PERPLEXITY = "accuracy", "held-out loss", "perplexity"
"""Metrics of the held-out samples that a run tells by itself: the share of targets predicted right,
the mean loss per sample, and of texts e to the mean cross entropy per token."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Values of one metric ("loss", "accuracy", "throughput", ...) at consecutive points.
    `steps` are minibatches since the start of the run, `times` Unix seconds."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    times: tuple[float, ...]
    epoch: int = 0
    event: Literal["metrics"] = "metrics"


@dataclass(frozen=True, slots=True)
class Spans:
    """A file of spans (Arrow) of one rank and segment is ready in the job's folder: what it
    did, when it loaded the samples of its forwards, or when it copied for a checkpoint."""

    rank: int
    segment: int
    path: str
    num_spans: int
    kind: Literal["measured", "loading", "saving"] = "measured"
    event: Literal["spans"] = "spans"


@dataclass(frozen=True, slots=True)
class Clock:
    """How many seconds the clock of the rank's host is ahead of rank 0's, and most that this may
    be off; its spans are on rank 0's. Told by ranks of other hosts, anew for each segment."""

    rank: int
    segment: int
    seconds: float
    error: float
    event: Literal["clock"] = "clock"


@dataclass(frozen=True, slots=True)
class ProfileReady:
    """The profile (JSON of `Profile`) is ready in the job's folder."""

    path: str
    event: Literal["profile"] = "profile"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file in the job's folder that is to be kept with the run."""

    name: str
    path: str
    event: Literal["artifact"] = "artifact"


@dataclass(frozen=True, slots=True)
class Saved:
    """One of the `num_files` files of a checkpoint is ready in the job's folder.

    epoch, samples   how far the training was: whole epochs, and samples of the next one
    step             weight updates (minibatches) since the start of the run
    """

    rank: int
    epoch: int
    samples: int
    step: int
    path: str
    num_files: int
    event: Literal["saved"] = "saved"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rank 0 has chosen to take a checkpoint after so many microbatches of an epoch. `file` is
    the name of what says so in a job's folder."""

    rank: int
    epoch: int
    num_microbatches: int
    event: Literal["chosen"] = "chosen"

    @property
    def file(self) -> str:
        return f"save-after-{self.epoch}-{self.num_microbatches}"


@dataclass(frozen=True, slots=True)
class RankError:
    """The rank cannot go on. Fields as in `RunError`."""

    rank: int
    kind: str
    message: str
    advice: str = ""
    detail: str = ""
    event: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class Finished:
    """The rank's work is done; `epochs` completed (0 for a profile)."""

    rank: int
    epochs: int = 0
    event: Literal["finished"] = "finished"


Event = (
    Started
    | Heartbeat
    | Progress
    | Metrics
    | Spans
    | Clock
    | ProfileReady
    | Artifact
    | Saved
    | Chosen
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
