"""What waits on the node's disk: in its order, each once, whatever fails; bounded by a rule."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from backend.runs.checkpoints import CheckpointFile, Mark
from backend.runs.events import Metrics, Spans, write_line
from backend.runs.fence import Fence
from backend.storage.errors import DatabaseUnreachable
from workers.supervisor.journal import Journal
from workers.supervisor.keeping import Whole
from workers.supervisor.lines import Heard
from workers.supervisor.spool import Said, Spool, Told, leftovers
from workers.supervisor.spool_room import Room

FENCE = Fence(3, 2, "a1b2c3d4" * 4)
ENTRIES = (
    Told('{"event":"metrics"}'),
    Said(((None, 1.5, "odd \udc80 \0 ü"), (1, 2.0, ""))),
    Whole(Mark(1, 28, 7), (CheckpointFile("stage-0", 5, "ab"),)),
)


def rest(spool: Spool) -> Iterator[Any]:
    while (waiting := spool.first()) is not None:
        yield waiting
        spool.done()


def test_entries_come_out_in_their_order_with_their_numbers(tmp_path: Path):
    spool = Spool(tmp_path, FENCE)
    spool.add(ENTRIES[:2])
    spool.add(ENTRIES[2:])
    assert len(spool) == 3
    assert list(rest(spool)) == list(enumerate(ENTRIES, 1))
    assert (len(spool), spool.size, spool.first()) == (0, 0, None)
    spool.add(ENTRIES[:1])
    assert spool.first() == (4, ENTRIES[0])


def test_another_process_finds_what_was_left(tmp_path: Path):
    before = Spool(tmp_path, FENCE)
    before.add(ENTRIES)
    before.first()
    before.done()  # nothing of that is on the disk: `Journal.skip` asks the database
    (path,) = leftovers(tmp_path)
    with path.open("ab") as file:
        file.write(b'[4, "Told", {"li')  # it died in the middle of a write
    after = Spool.left(path)
    assert after is not None
    assert after.fence == FENCE
    assert list(rest(after)) == list(enumerate(ENTRIES, 1))
    after.remove()
    assert not leftovers(tmp_path)


def test_of_a_spool_without_its_beginning_nothing_is_left(tmp_path: Path):
    (tmp_path / "3-2-a.spool").write_bytes(b'{"run_id": 3, "att')
    assert Spool.left(tmp_path / "3-2-a.spool") is None


def test_what_finds_no_room_on_the_disk_is_not_half_there(tmp_path: Path, monkeypatch):
    spool = Spool(tmp_path, FENCE)
    spool.add(ENTRIES[:1])
    real = os.pwrite

    def full(handle: int, data: bytes, offset: int) -> int:
        if len(data) <= 20:
            raise OSError(28, "No space left on device")
        return real(handle, data[:-20], offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        spool.add(ENTRIES[1:])
    monkeypatch.setattr(os, "pwrite", real)
    spool.add(ENTRIES[1:])
    assert list(rest(spool)) == list(enumerate(ENTRIES, 1))


def test_timelines_go_first_then_printed_lines_and_losses_never():
    room = Room(1000)
    loss = Told(write_line(Metrics("loss", (1,), (0.5,), (0.0,))))
    timeline = Told(write_line(Spans(0, 0, "spans-0-0.arrow", 3)))
    said = Said(((None, 0.0, "the agent"), (0, 0.0, "a rank")))
    assert room.taken([loss, timeline, said], 500).entries == (loss, timeline, said)
    half = room.taken([loss, timeline, said], 501)
    assert half.entries[:2] == (loss, said)
    assert half.left_out == ("spans-0-0.arrow",)
    assert "left out from now on" in half.entries[2].lines[0][2]
    late = room.taken([loss, said], 751)
    assert late.entries == (loss, Said(((None, 0.0, "the agent"),)))
    assert not room.is_full(1000)
    assert room.is_full(1001)
    (told,) = room.taken([], 0).entries
    assert "1 timeline(s) and 1 printed line(s)" in told.lines[0][2]
    assert room.taken([], 0).entries == ()


@dataclass
class Database:
    """Takes numbered writes once. `plan` says how the next ones go: True as they should, False
    refused, None done and the answer lost."""

    plan: list[bool | None] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    newest: int = 0
    run: Any = field(default_factory=lambda: SimpleNamespace(spec=None))

    def checkpoint_folder(self, step: int) -> Path:
        return Path()

    def written(self) -> int:
        return self.newest

    def metrics(self, metrics: Metrics, number: int) -> None:
        self._write([("loss", step) for step in metrics.steps], number)

    def logs(self, lines: Any, number: int) -> None:
        self._write([("line", text) for _, _, text in lines], number)

    def _write(self, records: list[Any], number: int) -> None:
        goes = self.plan.pop(0) if self.plan else True
        if goes is not False and number > self.newest:
            self.kept += records
            self.newest = number
        if not goes:
            raise DatabaseUnreachable("away")


class EveryRecordOnce(RuleBasedStateMachine):
    """Whatever the database refuses or forgets to answer, and whenever the agent dies."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp())
        self.database = Database()
        self.spool = Spool(self.folder, FENCE)
        self.journal = self.of(self.spool)
        self.told: list[Any] = []
        self.count = 0

    def of(self, spool: Spool) -> Journal:
        return Journal(self.database, self.folder, spool)  # type: ignore[arg-type]  # enough

    @rule(
        lines=st.lists(st.booleans(), max_size=4),
        plan=st.lists(st.sampled_from([True, False, None]), max_size=4),
    )
    def tell(self, lines: list[bool], plan: list[bool | None]) -> None:
        """Losses and lines are heard, and go to the disk at the next write."""
        heard: list[list[Any]] = [[], []]
        for is_loss in lines:
            self.count += 1
            text = str(self.count)
            if is_loss:
                text = write_line(Metrics("loss", (self.count,), (0.0,), (0.0,)))
            heard[not is_loss].append(("loss", self.count) if is_loss else ("line", text))
            self.journal.hear(Heard(0, 0.0, text))
        self.told += heard[0] + heard[1]
        self.database.plan = plan
        self.flush()

    def flush(self) -> bool:
        try:
            self.journal.flush()
        except DatabaseUnreachable:
            return False
        return True

    @rule()
    def die(self) -> None:
        """Another agent finds the file, and goes on where the database is."""
        paths = leftovers(self.folder)
        if not paths:
            return
        found = Spool.left(paths[0])
        assert found is not None
        self.spool = found
        self.journal = self.of(found)
        self.journal.skip(self.database.written())
        while not self.flush():
            pass
        found.remove()
        self.database.newest = 0  # and with the next attempt numbers begin anew
        self.spool = Spool(self.folder, FENCE)
        self.journal = self.of(self.spool)

    @invariant()
    def nothing_twice_nothing_out_of_turn(self) -> None:
        assert self.database.kept == self.told[: len(self.database.kept)]

    def teardown(self) -> None:
        self.database.plan = []
        while not self.flush():
            pass
        assert self.database.kept == self.told
        shutil.rmtree(self.folder)


EveryRecordOnce.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestEveryRecordOnce = EveryRecordOnce.TestCase
