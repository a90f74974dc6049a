"""Use over time in SQL: bounded, in order, fenced, gone with its run."""

import pytest
from sqlalchemy import func, select

from backend.bootstrap import Backend
from backend.runs.attempts.fence import LeaseLost
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from backend.runs.use import RESOLUTIONS, Use, UsePoint
from backend.storage.tables.use_tables import NodeUseRow, RunUseRow

FINE = RESOLUTIONS[0]


def point(time: float, share: float = 0.5) -> UsePoint:
    return UsePoint(time, (Use("machine", share, 1e9, 4e9, sent=12.5),))


def test_newer_points_of_a_node_take_the_place_of_the_oldest(backend: Backend):
    times = [1e9 + FINE.seconds * n for n in range(FINE.count + 2)]
    for when in times:
        backend.use.keep_of_node("here", [(0, point(when))])
    assert [each.time for each in backend.use.of_node("here")] == times[2:]
    assert backend.use.of_node("here", times[-1]) == [point(times[-1])]
    assert backend.use.of_node("there") == []


def test_what_is_older_than_the_longest_history_goes_away(backend: Backend):
    backend.use.keep_of_node("gone", [(0, point(1e9))])
    backend.use.keep_of_node("here", [(2, point(1e9 + RESOLUTIONS[2].span + 1))])
    assert backend.use.of_node("gone") == []
    with backend.database.read() as session:
        assert session.scalar(select(func.count()).select_from(NodeUseRow)) == 1


def test_a_runs_use_is_written_by_its_holder_and_goes_with_it(backend: Backend, run: Run):
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    attempt.use([(0, point(1e9)), (1, point(1e9, 0.25))])
    attempt.use([(0, point(1e9 + FINE.seconds))])
    assert [each.time for each in backend.use.of_run(run.id)] == [1e9, 1e9 + FINE.seconds]
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    with pytest.raises(LeaseLost):
        attempt.use([(0, point(2e9))])
    backend.runs.delete(run.id)
    with backend.database.read() as session:
        assert session.scalar(select(func.count()).select_from(RunUseRow)) == 0
