"""What waits on the node's disk: in its order, each once, whatever fails; bounded by a rule."""

import errno
import os
import shutil
import subprocess
import sys
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

from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.attempts.fence import Fence
from backend.runs.events import Metrics, Spans, write_line
from backend.storage.errors import DatabaseUnreachable
from workers.supervisor.ranks.lines import PrintedLine
from workers.supervisor.reporting.event_writer import EventWriter
from workers.supervisor.reporting.spool_recovery import left_spools
from workers.supervisor.spool import spool as spool_module
from workers.supervisor.spool.entries import CopiedCheckpoint, EventLine, LogLines
from workers.supervisor.spool.limit import SpoolLimit
from workers.supervisor.spool.spool import SETTINGS, Spool

FENCE = Fence(3, 2, "a1b2c3d4" * 4)
ENTRIES = (
    EventLine('{"event":"metrics"}'),
    LogLines(((None, 1.5, "odd \udc80 \0 ü"), (1, 2.0, ""))),
    CopiedCheckpoint(Mark(1, 28, 7), (CheckpointFile("stage-0", 5, "ab"),)),
)
WRITER = """
import sys
from pathlib import Path
from backend.runs.attempts.fence import Fence
from workers.supervisor.spool.entries import EventLine
from workers.supervisor.spool.spool import Spool
spool = Spool.of(Path(sys.argv[1]), Fence(3, 2, "a1b2c3d4" * 4))
for batch in range(100_000):
    spool.add([EventLine(f"{batch}"), EventLine(f"{batch}")])
    spool.first()
    spool.done()
    print(batch, flush=True)
"""


def rest(spool: Spool) -> Iterator[Any]:
    while (waiting := spool.first()) is not None:
        yield waiting
        spool.done()


def after_a_kill(folder: Path) -> Path:
    """The folder as the next process finds it: nothing was closed."""
    return Path(shutil.copytree(folder, mkdtemp(), dirs_exist_ok=True))


def test_entries_come_out_in_their_order_with_their_numbers(tmp_path: Path):
    spool = Spool.of(tmp_path, FENCE)
    spool.add(ENTRIES[:2])
    spool.add(ENTRIES[2:])
    assert spool.num_waiting == 3
    assert list(rest(spool)) == list(enumerate(ENTRIES, 1))
    assert (spool.num_waiting, spool.size, spool.first()) == (0, 0, None)
    spool.add(ENTRIES[:1])
    assert spool.first() == (4, ENTRIES[0])
    spool.remove()
    assert not list(tmp_path.iterdir())


def test_another_process_finds_what_was_left(tmp_path: Path):
    before = Spool.of(tmp_path, FENCE)
    before.add(ENTRIES)
    before.first()
    before.done()  # nothing of that is on the disk: `EventWriter.skip` asks the database
    (path,) = left_spools(after_a_kill(tmp_path))
    after = Spool.left(path)
    assert (after.fence, after.num_waiting) == (FENCE, 3)
    assert after.size > before.size
    assert list(rest(after)) == list(enumerate(ENTRIES, 1))
    after.add(ENTRIES[:1])
    assert after.first() == (4, ENTRIES[0])


def test_what_a_killed_process_added_is_whole_and_in_order(tmp_path: Path):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(50):
            told = int(process.stdout.readline())
        process.kill()
    (path,) = left_spools(tmp_path)
    spool = Spool.left(path)
    numbers, entries = zip(*rest(spool), strict=True)
    assert numbers[-1] >= 2 * (told + 1)
    assert numbers[-1] % 2 == 0
    assert list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    assert [int(entry.line) for entry in entries] == [(number - 1) // 2 for number in numbers]


def test_a_commit_that_was_cut_off_counts_for_nothing(tmp_path: Path):
    spool = Spool.of(tmp_path, FENCE)
    spool.add(ENTRIES[:1])
    spool.add(ENTRIES[1:])
    copy = after_a_kill(tmp_path)
    (log,) = copy.glob("*-wal")
    os.truncate(log, log.stat().st_size - 100)
    left = Spool.left(left_spools(copy)[0])
    assert list(rest(left)) == [(1, ENTRIES[0])]


def test_what_finds_no_room_on_the_disk_is_not_half_there(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(spool_module, "SETTINGS", f"{SETTINGS}PRAGMA max_page_count = 8;")
    spool = Spool.of(tmp_path, FENCE)
    spool.add(ENTRIES[:1])
    with pytest.raises(OSError, match="full") as fault:
        spool.add([EventLine("x"), EventLine("x" * 100_000)])
    assert fault.value.errno == errno.ENOSPC
    spool.add(ENTRIES[1:])
    assert list(rest(spool)) == list(enumerate(ENTRIES, 1))


def test_what_finds_no_room_takes_none(tmp_path: Path, monkeypatch):
    """Else nobody had any for the end of the run: SQLite rolls back, and keeps a grown log."""
    few = "PRAGMA max_page_count = 50; PRAGMA cache_size = 5;"
    monkeypatch.setattr(spool_module, "SETTINGS", SETTINGS + few)
    spool = Spool.of(tmp_path, FENCE)
    spool.add(ENTRIES)
    before = sum(path.stat().st_size for path in tmp_path.iterdir())
    with pytest.raises(OSError, match="full"):
        spool.add([EventLine("x" * 3_000)] * 200)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == before
    spool.add(ENTRIES)
    left = Spool.left(left_spools(after_a_kill(tmp_path))[0])
    assert [entry for _, entry in rest(left)] == [*ENTRIES, *ENTRIES]


def test_a_disk_that_is_full_at_the_first_entry_may_have_room_later(tmp_path: Path, monkeypatch):
    spool = Spool.of(tmp_path, FENCE)
    monkeypatch.setattr(spool_module, "SETTINGS", f"{SETTINGS}PRAGMA max_page_count = 3;")
    with pytest.raises(OSError, match="full"):
        spool.add(ENTRIES)
    monkeypatch.setattr(spool_module, "SETTINGS", SETTINGS)
    spool.add(ENTRIES)
    assert list(rest(spool)) == list(enumerate(ENTRIES, 1))


def test_what_an_older_version_left_keeps_its_numbers(tmp_path: Path):
    lines = (
        f'{{"run_id": 3, "attempt": 2, "token": "{FENCE.token}"}}',
        r'[4, "Told", {"line": "{\"event\":\"metrics\"}"}]',
        r'[5, "Said", {"lines": [[null, 1.5, "odd \udc80 \u0000 \u00fc"], [1, 2.0, ""]]}]',
        '[6, "Whole", {"mark": {"epoch": 1, "samples": 28, "step": 7},'
        ' "files": [{"name": "stage-0", "size": 5, "sha256": "ab"}]}]',
        '[7, "Told", {"li',
    )
    (tmp_path / "3-2-a1b2c3d4.spool").write_text("\n".join(lines))
    (tmp_path / "3-3-a1b2c3d4.spool").write_text('{"run_id": 3, "att')
    (path,) = left_spools(tmp_path)
    spool = Spool.left(path)
    assert (spool.fence, spool.num_waiting) == (FENCE, 3)
    assert list(rest(spool)) == list(enumerate(ENTRIES, 4))
    assert [file.name for file in tmp_path.glob("*.spool")] == []


def test_timelines_go_first_then_printed_lines_and_losses_never():
    limit = SpoolLimit(1000)
    loss = EventLine(write_line(Metrics("loss", (1,), (0.5,), (0.0,))))
    timeline = EventLine(write_line(Spans(0, 0, "spans-0-0.arrow", 3)))
    said = LogLines(((None, 0.0, "the agent"), (0, 0.0, "a rank")))
    assert limit.admitted([loss, timeline, said], 500) == ([loss, timeline, said], [])
    half, left_out = limit.admitted([loss, timeline, said], 501)
    assert half[:2] == [loss, said]
    assert left_out == ["spans-0-0.arrow"]
    assert "left out from now on" in half[2].lines[0][2]
    late, _ = limit.admitted([loss, said], 751)
    assert late == [loss, LogLines(((None, 0.0, "the agent"),))]
    assert not limit.is_full(1000)
    assert limit.is_full(1001)
    (told,), _ = limit.admitted([], 0)
    assert "1 timeline and 1 printed line" in told.lines[0][2]
    assert limit.admitted([], 0) == ([], [])


@dataclass
class Database:
    """Takes numbered writes once. `plan` says how the next ones go: True as they should, False
    refused, None done and the answer lost."""

    plan: list[bool | None] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    newest: int = 0
    run: Any = field(default_factory=lambda: SimpleNamespace(spec=None, asked=None))

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
        self.spool = Spool.of(self.folder, FENCE)
        self.writer = self.of(self.spool)
        self.told: list[Any] = []
        self.count = 0

    def of(self, spool: Spool) -> EventWriter:
        return EventWriter(self.database, self.folder, spool)  # type: ignore[arg-type]  # enough

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
            self.writer.hear(PrintedLine(0, 0.0, text, is_event=is_loss))
        self.told += heard[0] + heard[1]
        self.database.plan = plan
        self.flush()

    def flush(self) -> bool:
        try:
            self.writer.flush()
        except DatabaseUnreachable:
            return False
        return True

    @rule()
    def die(self) -> None:
        """Another agent finds the file, and goes on where the database is."""
        paths = left_spools(after_a_kill(self.folder))
        self.spool.remove()
        if not paths:
            return
        found = Spool.left(paths[0])
        self.spool = found
        self.writer = self.of(found)
        self.writer.skip(self.database.written())
        while not self.flush():
            pass
        found.remove()
        self.database.newest = 0  # and with the next attempt numbers begin anew
        self.spool = Spool.of(self.folder, FENCE)
        self.writer = self.of(self.spool)

    @invariant()
    def nothing_twice_nothing_out_of_turn(self) -> None:
        assert self.database.kept == self.told[: len(self.database.kept)]

    def teardown(self) -> None:
        self.database.plan = []
        while not self.flush():
            pass
        assert self.database.kept == self.told
        shutil.rmtree(self.folder)


EveryRecordOnce.TestCase.settings = settings(max_examples=60, stateful_step_count=20)
TestEveryRecordOnce = EveryRecordOnce.TestCase
