"""What was heard is written in its order, and again under its number where the answer was lost."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.attempts.checkpoints import Mark
from backend.runs.attempts.fence import Fence
from backend.runs.events import HELD_OUT_LOSS, Event, Metrics, Saved, write_line
from backend.runs.request.spec import TrainSpec
from backend.storage.errors import DatabaseUnreachable
from workers.supervisor.ranks.lines import PrintedLine
from workers.supervisor.reporting import record_bounds as bounds
from workers.supervisor.reporting.event_writer import MAX_BEHIND, EventWriter
from workers.supervisor.spool.spool import Spool

FENCE = Fence(1, 1, "f" * 32)


@dataclass
class Database:
    """Writes what it is told; then the connection breaks, as often as `lost` says."""

    place: Path
    lost: int = 0
    writes: list[tuple[Any, ...]] = field(default_factory=list)
    run: Any = field(default_factory=lambda: SimpleNamespace(spec=None, asked=None))

    def checkpoint_folder(self, step: int) -> Path:
        return self.place / str(step)

    def metrics(self, metrics: Metrics, batch: int) -> None:
        self._write("metrics", metrics.steps, batch)

    def logs(self, lines: Any, batch: int) -> None:
        self._write("logs", tuple(text for _, _, text in lines), batch)

    def checkpoint(self, mark: Mark, files: Any, keep: int, batch: int) -> None:
        self._write("checkpoint", mark.step, batch)

    def _write(self, *write: Any) -> None:
        self.writes.append(write)
        if self.lost:
            self.lost -= 1
            raise DatabaseUnreachable("the answer was lost")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "kept")


@pytest.fixture
def writer(database: Database, tmp_path: Path) -> EventWriter:
    (tmp_path / "work").mkdir()
    spool = Spool.of(tmp_path / "spool", FENCE)
    return EventWriter(database, tmp_path / "work", spool)  # type: ignore[arg-type]  # enough of it


def hear(writer: EventWriter, event: Event | str) -> None:
    is_event = not isinstance(event, str)
    text = write_line(event) if is_event else event
    writer.hear(PrintedLine(0, 1.0, text, is_event))


def loss(step: int) -> Metrics:
    return Metrics("loss", (step,), (1.0,), (0.0,))


def test_writes_are_numbered_and_repeated_under_their_number(
    writer: EventWriter, database: Database
):
    database.lost = 2
    hear(writer, loss(0))
    hear(writer, "hello")
    for _ in range(2):
        with pytest.raises(DatabaseUnreachable):
            writer.flush()
    hear(writer, loss(1))
    writer.flush()
    assert database.writes == [
        ("metrics", (0,), 1),
        ("metrics", (0,), 1),
        ("metrics", (0,), 1),
        ("logs", ("hello",), 2),
        ("metrics", (1,), 3),
    ]


def test_a_checkpoint_comes_after_what_was_told_before_it(
    writer: EventWriter, database: Database, tmp_path: Path
):
    file = tmp_path / "work" / "stage-0"
    file.write_bytes(b"state")
    database.lost = 1
    hear(writer, loss(6))
    hear(writer, Saved(0, 0, 28, 7, str(file), 1))
    writer.settle(30)
    with pytest.raises(DatabaseUnreachable):
        writer.flush()
    assert writer.results.checkpoints == 0
    writer.flush()
    assert [write[0] for write in database.writes] == ["metrics", "metrics", "checkpoint"]
    assert writer.results.checkpoints == 1


def test_when_too_much_waits_the_ranks_wait_too(writer: EventWriter):
    for step in range(MAX_BEHIND):
        hear(writer, loss(step))
    assert not writer.is_behind
    hear(writer, loss(MAX_BEHIND))
    assert writer.is_behind
    writer.flush()
    assert not writer.is_behind


def test_while_the_database_is_away_the_spool_takes_more(writer: EventWriter, database: Database):
    database.lost = 1
    for step in range(MAX_BEHIND + 1):
        hear(writer, loss(step))
    with pytest.raises(DatabaseUnreachable):
        writer.flush()
    assert writer.num_waiting > MAX_BEHIND
    assert not writer.is_behind
    writer.flush()
    assert writer.num_waiting == 0


@pytest.mark.parametrize(
    ("target", "reached"),
    [({"target_loss": 0.5}, 7.0), ({"target_accuracy": 0.9}, 8.0), ({}, None)],
)
def test_the_first_evaluation_that_meets_the_target_is_remembered(
    writer: EventWriter, database: Database, target: dict[str, float], reached: float | None
):
    stage = Stage(0, 1, (0,))
    database.run.asked = TrainSpec(1, Plan("p", Partition((stage,)), "pipedream", 1), **target)
    for time, (accuracy, held_out) in enumerate([(0.8, 0.6), (0.8, 0.5), (0.95, 0.4)], start=6):
        hear(writer, Metrics("loss", (time,), (0.1,), (float(time),)))
        hear(writer, Metrics("accuracy", (time,), (accuracy,), (float(time),)))
        hear(writer, Metrics(HELD_OUT_LOSS, (time,), (held_out,), (float(time),)))
    assert writer.results.reached == reached


def test_metrics_and_lines_end_with_a_note(
    writer: EventWriter, database: Database, monkeypatch: pytest.MonkeyPatch
):
    for name, most in (("MAX_VALUES", 3), ("MAX_NAMES", 2), ("MAX_LINES", 2)):
        monkeypatch.setattr(bounds, name, most)
    for step in range(5):
        hear(writer, loss(step))
        hear(writer, f"line {step}")
    for name in ("a", "b"):
        hear(writer, Metrics(name, (0,), (1.0,), (0.0,)))
    writer.flush()
    kept = [steps for kind, steps, _ in database.writes if kind == "metrics"]
    (lines,) = [texts for kind, texts, _ in database.writes if kind == "logs"]
    assert kept == [(0,), (1,), (2,)]
    assert [text.partition(":")[0] for text in lines] == [
        *("line 0", "line 1", "the log is cut off here", "metrics end here")
    ]


def test_a_metric_has_one_value_per_step_whatever_a_rank_tells(
    database: Database, writer: EventWriter
):
    for steps in ((0, 1), (1, 1, 2), (0,), (3, 2)):
        hear(writer, Metrics("loss", steps, (1.0,) * len(steps), (0.0,) * len(steps)))
    writer.flush()
    assert [steps for _, steps, _ in database.writes] == [(0, 1), (2,), (3,)]


def test_what_other_ranks_remember_is_written_where_the_teller_had_not_told_it(
    database: Database, writer: EventWriter
):
    for rank, steps in ((2, (0, 1)), (2, (2,)), (3, (1, 2, 3, 4)), (1, (3, 4)), (3, (2,))):
        told = Metrics("loss", steps, tuple(map(float, steps)), tuple(map(float, steps)))
        writer.hear(PrintedLine(rank, 0.0, write_line(told), True))
    writer.flush()
    assert [steps for _, steps, _ in database.writes] == [(0, 1), (2,), (3, 4)]
