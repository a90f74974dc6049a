"""TensorBoard: a file of events per run, as `tensorboard --logdir` reads them.

The format is that of TensorFlow's event files; the package `tensorboard` writes its records.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from backend.runs.history.followed import NamedPoint, TrackerPlace
from backend.trackers.tracker import Told, TrackerRefuses, require

VERSION = "brain.Event:2"


@dataclass(frozen=True, slots=True)
class TensorBoard:
    """`folder` is what `--logdir` names; each run has a folder of its own there."""

    folder: Path
    name: str = "tensorboard"
    title: str = "TensorBoard"
    pause: float = 2.0
    whole: bool = False

    @property
    def where(self) -> str:
        return str(self.folder)

    def send(self, told: Told, place: TrackerPlace) -> TrackerPlace:
        """`mark` is the size of the file behind what was confirmed: the rest is cut off first."""
        require("tensorboard", "tensorboard")
        file = self.folder / told.folder / f"events.out.tfevents.{told.started:.0f}.{told.key}"
        try:
            size = _append(file, int(place.mark or 0), told)
        except OSError as fault:
            raise TrackerRefuses(
                f"{file} cannot be written: {fault.strerror}",
                "Correct it, and follow the run again.",
            ) from None
        return TrackerPlace(str(file.parent), mark=str(size))


def event_file(told: Told) -> bytes:
    """A whole run as a file of events. Raises `TrackerNotInstalled`."""
    require("tensorboard", "tensorboard")
    file = BytesIO()
    _write(file, told, begins=True)
    return file.getvalue()


def _append(file: Path, size: int, told: Told) -> int:
    """How large the file is then."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("r+b" if file.exists() else "w+b") as stream:
        begins = (
            size == 0 or file.stat().st_size < size
        )  # somebody took it away: what comes is kept
        stream.truncate(0 if begins else size)
        stream.seek(0, os.SEEK_END)
        _write(stream, told, begins)
        stream.flush()
        os.fsync(stream.fileno())
        return stream.tell()


def _write(stream: IO[bytes], told: Told, begins: bool) -> None:
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.summary.writer.record_writer import RecordWriter

    writer = RecordWriter(stream)
    events = [_header(told), _text(told)] if begins else []
    if told.back_to is not None:  # readers then leave out what they have from this step on
        again = SessionLog(status=SessionLog.START)
        events.append(Event(step=told.back_to, session_log=again, wall_time=told.started))
    for event in (*events, *_scalars(told.points)):
        writer.write(event.SerializeToString())


def _header(told: Told) -> Any:
    from tensorboard.compat.proto.event_pb2 import Event

    return Event(wall_time=told.started, file_version=VERSION)


def _text(told: Told) -> Any:
    """What the run was asked for, as the page "Text" shows it."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    shown = SummaryMetadata(data_class=DATA_CLASS_TENSOR)
    shown.plugin_data.plugin_name = "text"
    words = f"[{told.title}]({told.page})\n\n{_table(told.parameters)}".encode()
    value = Summary.Value(
        tag="run", metadata=shown, tensor=TensorProto(dtype="DT_STRING", string_val=[words])
    )
    return Event(wall_time=told.started, summary=Summary(value=[value]))


def _table(parameters: Mapping[str, str]) -> str:
    rows = [f"| {name} | {value.replace('|', ' ')} |" for name, value in parameters.items()]
    return "\n".join(("| parameter | value |", "|---|---|", *rows))


def _scalars(points: Iterable[NamedPoint]) -> Iterable[Any]:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    for point in points:
        value = Summary.Value(tag=point.name, simple_value=point.value)
        yield Event(wall_time=point.time, step=point.step, summary=Summary(value=[value]))
