"""What each member of the catalog of trackers has of a run, read back by its own means."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json import loads
from pathlib import Path

from backend.runs.history.followed import Followed

Points = list[tuple[str, int, float]]


@dataclass(frozen=True, slots=True)
class There:
    """A run in a tracker: its points by name and step, what it was asked for, how it ended."""

    points: Points
    parameters: dict[str, str]
    ended: str


Read = Callable[[Followed, Path, str], There]
"""Of what was followed, the home, and the server's URL (MLflow's)."""


def in_tensorboard(followed: Followed, home: Path, _: str) -> There:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(home / "tensorboard" / f"run-{followed.run_id}"))
    events.Reload()
    tags = events.Tags()
    points = [(n, e.step, e.value) for n in tags["scalars"] for e in events.Scalars(n)]
    (text,) = [e.tensor_proto.string_val[0].decode() for e in events.Tensors("run")]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return There(sorted(points), dict(rows[1:]), "")


def in_mlflow(followed: Followed, _: Path, server: str) -> There:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(server)
    run = client.get_run(followed.place.remote)
    points = [
        (name, metric.step, metric.value)
        for name in run.data.metrics
        for metric in client.get_metric_history(run.info.run_id, name)
    ]
    return There(sorted(points), run.data.params, run.info.status)


def in_wandb(followed: Followed, home: Path, _: str) -> There:
    from wandb.proto.wandb_internal_pb2 import Record

    (file,) = (home / "wandb" / f"run-{followed.run_id}").glob("**/*.wandb")
    points: Points = []
    parameters: dict[str, str] = {}
    ended = ""
    for data in _records(file.read_bytes()):
        record = Record.FromString(data)
        if record.HasField("run"):
            parameters |= {
                each.key: str(loads(each.value_json)) for each in record.run.config.update
            }
        if record.HasField("exit"):
            ended = str(record.exit.exit_code)
        row = {i.key or i.nested_key[0]: loads(i.value_json) for i in record.history.item}
        row = {name: value for name, value in row.items() if not name.startswith("_")}
        if row:
            step = int(row.pop("update"))
            row.pop("epoch")
            points += [(name, step, value) for name, value in row.items()]
    return There(sorted(points), parameters, ended)


def _records(data: bytes) -> Iterator[bytes]:
    """Of a log in LevelDB's format (log_format.md there), behind a header of seven bytes."""
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, size, kind = struct.unpack("<IHB", data[at : at + 7])
        whole += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield whole
            whole = b""


READERS: dict[str, Read] = {
    "tensorboard": in_tensorboard,
    "mlflow": in_mlflow,
    "wandb": in_wandb,
}
ENDS = {"tensorboard": "", "mlflow": "FINISHED", "wandb": "0"}
