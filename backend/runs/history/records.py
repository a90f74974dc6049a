"""What a run leaves behind, as it is stored: log lines, metric points, files, attempts."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from backend.planning.plan import Plan
from backend.runs.run import RunError

TimelineKind = Literal["measured", "predicted", "loading", "saving"]
"""What ranks did, what they were expected to do; when they loaded the samples of a forward, and
when they copied weights for a checkpoint in an action."""

TRAINED_MODEL = "model.safetensors"
"""The file of a training's result: all weights under the model's own names."""
TRAINED_INDEX = "model.safetensors.index.json"
"""The result of a larger model: which of its files has which weights, as Hugging Face names it."""

LogText = tuple[int | None, float, str]
"""Rank (None = the agent), Unix seconds, text."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """`seq` counts the run's lines from 1; `time` in Unix seconds; `rank` None = the agent."""

    seq: int
    time: float
    rank: int | None
    text: str


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One value of a metric at `step` minibatches since the start; `time` in Unix seconds."""

    step: int
    epoch: int
    value: float
    time: float


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """Encoded spans of one rank and segment (`backend.pipeline.columns`)."""

    kind: TimelineKind
    rank: int
    segment: int
    data: bytes
    num_spans: int


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """A file kept with a run. `sha256` in hex, `size` in bytes."""

    name: str
    path: Path
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """outcome    a final state, or "restarted"; None while it goes on
    error      why it ended, where it did not succeed
    first_seq  sequence number of its first log line
    step       weight updates after which it went on from a checkpoint; None = the beginning
    plan       the fallback by which it went on with fewer nodes; None = the run's own plan
    factor     predicted samples/s of that plan over those of the run's own
    """

    number: int
    node: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    error: RunError | None
    first_seq: int
    step: int | None
    plan: Plan | None = None
    factor: float | None = None
