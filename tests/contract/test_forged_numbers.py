"""Whatever a rank reports, the end of its run is written, and what is stored is read again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.bootstrap import Backend
from backend.errors import InvalidInput
from backend.pipeline.actions import Forward
from backend.pipeline.columns import decode, encode
from backend.pipeline.timeline import Span, Timeline
from backend.runs.run import Run, RunError, RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from backend.storage.errors import FolderUnusable, StorageFull
from tests.app.seed import a_profile
from workers.stop import Stop
from workers.supervisor.reporting import ballast
from workers.supervisor.reporting.conclusion import conclude
from workers.supervisor.reporting.event_writer import EventWriter
from workers.supervisor.spool.spool import Spool
from workers.supervisor.state.ending import SUCCEEDED, Ending

FAILED = Ending(RunState.FAILED, RunError("ModelRaised", "by itself"))


@pytest.fixture
def attempt(backend: Backend, run: Run) -> Attempt:
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    return attempt


@pytest.mark.parametrize(("ending", "kind"), [(SUCCEEDED, "AgentFault"), (FAILED, "ModelRaised")])
def test_an_end_is_written_without_numbers_that_no_column_holds(
    backend: Backend, attempt: Attempt, tmp_path: Path, ending: Ending, kind: str
) -> None:
    writer = EventWriter(attempt, tmp_path, Spool.of(tmp_path / "spool", attempt.fence))
    writer.begin()
    writer.results.profile_id = 10**30
    assert conclude(attempt, writer, tmp_path, ending, Stop())
    ended = backend.runs.get(attempt.run.id)
    assert (ended.state, ended.summary) == (RunState.FAILED, RunSummary())
    assert ended.error is not None
    assert ended.error.kind == kind


def test_last_reports_that_fill_the_disk_leave_room_for_the_end(
    backend: Backend, attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = EventWriter(attempt, tmp_path, Spool.of(tmp_path / "spool", attempt.fence))
    room = tmp_path / ballast.FILE
    seen: list[bool] = []

    def full(seconds: float) -> None:
        seen.append(room.exists())
        raise StorageFull("the disk is full")

    def finish(*end: Any) -> None:
        seen.append(room.exists())
        finished(*end)

    finished = attempt.finish
    monkeypatch.setattr(writer, "flush", full)
    monkeypatch.setattr(attempt, "finish", finish)
    ballast.hold_back(tmp_path)
    assert conclude(attempt, writer, tmp_path, FAILED, Stop())
    assert seen == [True, False]
    assert backend.runs.get(attempt.run.id).error == FAILED.error


@pytest.mark.parametrize(
    "forged",
    [{"forward": float("nan")}, {"backward": float("inf")}, {"output_bytes": 10**30}],
    ids=str,
)
def test_a_profile_that_could_not_be_read_again_is_refused(
    backend: Backend, attempt: Attempt, forged: dict[str, float]
) -> None:
    profile = a_profile()
    layers = (replace(profile.graph.layers[0], **forged), *profile.graph.layers[1:])
    with pytest.raises(InvalidInput, match="cannot be stored"):
        attempt.profile(replace(profile, graph=replace(profile.graph, layers=layers)))
    assert list(backend.profiles.list()) == []


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_times_that_are_not_finite_are_no_spans(number: float) -> None:
    spans = Timeline.of([Span(0, n, Forward(0, n), n, n + 1.0) for n in range(3)])
    assert len(decode(encode(spans))) == 3
    forged = replace(spans, end=np.array([1.0, number, 3.0]))
    with pytest.raises(InvalidInput, match="not finite"):
        decode(encode(forged))


def test_a_folder_that_cannot_be_written_is_no_absent_database(
    backend: Backend, attempt: Attempt, tmp_path: Path
) -> None:
    backend.settings.home.mkdir(exist_ok=True)
    backend.settings.artifacts_folder.write_text("in the way")
    (tmp_path / "weights").write_bytes(b"1")
    with pytest.raises(FolderUnusable, match=str(backend.settings.artifacts_folder)):
        attempt.artifact("weights", tmp_path / "weights")
