"""Errors become events that a person can act on."""

import errno
import os

import pytest

from backend.runs.events import MAX_EVENT, Finished, Heartbeat, RankError, read_line
from workers.definitions.errors import ModelRaised
from workers.runtime.execution.training import LossNotFinite
from workers.runtime.failures import failed
from workers.runtime.reports import reporter as module
from workers.runtime.reports.reporter import Reporter


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (OSError(errno.ENOSPC, "no space", "/there"), "DiskFull", "while writing /there"),
        (MemoryError(), "OutOfMemory", "Rank 3"),
        (RuntimeError("CUDA out of memory. Tried to"), "OutOfMemory", "Rank 3"),
        (RuntimeError("gloo: Connection closed by peer [::1]"), "PeerLost", "another rank"),
        (KeyError("x"), "KeyError", "x"),
        (ModelRaised("m.py, line 3: bad", "look", "frames"), "ModelRaised", "line 3"),
        (LossNotFinite("The loss of minibatch 7 is nan."), "LossNotFinite", "minibatch 7"),
    ],
)
def test_kinds(error: Exception, kind: str, message: str) -> None:
    event = failed(3, error)
    assert (event.rank, event.kind) == (3, kind)
    assert message in event.message


def test_advice_and_the_users_frames_are_kept() -> None:
    event = failed(0, ModelRaised("m.py, line 3: bad", "look", "frames"))
    assert (event.advice, event.detail) == ("look", "frames")
    assert "learning rate" in failed(0, LossNotFinite("x")).advice


def test_work_ends_in_finished_or_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert Reporter(1).report(lambda: 4) == 0

    def broken() -> int:
        raise KeyError("x")

    assert Reporter(2).report(broken) == 1
    events = [read_line(line) for line in capsys.readouterr().out.splitlines()]
    assert events[0] == Finished(1, 4)
    assert isinstance(events[1], RankError)
    assert "in broken" in events[1].detail


def test_heartbeats_come_while_the_work_lasts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.01)
    told: list[Heartbeat] = []

    def work() -> int:
        while not told:
            events = map(read_line, capsys.readouterr().out.splitlines())
            told.extend(event for event in events if isinstance(event, Heartbeat))
        return 0

    assert Reporter(0).report(work) == 0
    assert (told[0].rank, told[0].done) == (0, None)
    assert told[0].use is not None


def test_an_error_of_any_length_arrives_cut_and_marked() -> None:
    readable, writable = os.pipe()

    def broken() -> int:
        raise ValueError("a" * 3_000_000 + "the cause")

    assert Reporter(0, writable).report(broken) == 1
    os.close(writable)
    with os.fdopen(readable) as pipe:
        event = read_line(pipe.readline(MAX_EVENT).rstrip("\n"))
    assert isinstance(event, RankError)
    assert event.message.endswith("the cause")
    assert "characters are left out" in event.message
    assert event.detail.rstrip().endswith("the cause")
    assert len(event.message) + len(event.detail) < 25_000


def test_an_error_without_words_has_its_name() -> None:
    class Wordless(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert failed(0, Wordless()).message == "Wordless"
