"""Runs found again: filters, order, labels, curves, the same once more."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from math import nan

import pytest

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.errors import InvalidInput, NotFound
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.events import Metrics
from backend.runs.history.labels import MAX_TAGS, Change
from backend.runs.history.listing import RunFilter, RunOrder, RunSort
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from backend.services.runs.runs import NotEnded

PLAN = Plan("even", Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,)))), "pipedream", 8)


def trained(backend: Backend, definition: Definition, name: str, accuracy: float | None) -> Run:
    run = backend.runs.submit(TrainSpec(definition.id, PLAN), name)
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    attempt.finish(RunState.SUCCEEDED, RunSummary(accuracy=accuracy))
    return backend.runs.get(run.id)


@pytest.fixture
def several(backend: Backend, definition: Definition) -> tuple[int, ...]:
    runs = [
        trained(backend, definition, name, accuracy)
        for name, accuracy in (("b", 0.9), ("a", 0.97), ("c", None), ("d", 0.5))
    ]
    return tuple(run.id for run in runs)


def found(backend: Backend, **wanted) -> list[int]:
    return [run.id for run in backend.runs.list(RunFilter(**wanted)).runs]


def ordered(backend: Backend, by: RunSort, descending: bool) -> list[int]:
    return [run.id for run in backend.runs.list(order=RunOrder(by, descending)).runs]


def test_what_is_not_known_comes_last_in_both_directions(backend: Backend, several):
    b, a, c, d = several
    assert ordered(backend, RunSort.ACCURACY, True) == [a, b, d, c]
    assert ordered(backend, RunSort.ACCURACY, False) == [d, b, a, c]


def test_other_orders(backend: Backend, several, definition: Definition):
    b, a, c, d = several
    assert ordered(backend, RunSort.NAME, False) == [a, b, c, d]
    assert ordered(backend, RunSort.CREATED, False) == [b, a, c, d]
    queued = backend.runs.submit(ProfileSpec(definition.id)).id
    assert ordered(backend, RunSort.STATE, False)[0] == queued
    assert ordered(backend, RunSort.SECONDS, True)[-1] == queued
    assert ordered(backend, RunSort.OWNER, True) == [queued, d, c, a, b]


def test_pages_of_an_order_do_not_overlap(backend: Backend, several):
    order = RunOrder(RunSort.ACCURACY)
    pages = [backend.runs.list(limit=2, offset=start, order=order) for start in (0, 2)]
    assert sorted(run.id for page in pages for run in page.runs) == sorted(several)
    assert {page.total for page in pages} == {4}


def test_ranges(backend: Backend, several):
    b, a, _, d = several
    assert found(backend, min_accuracy=0.9) == [a, b]
    assert found(backend, max_accuracy=0.9) == [d, b]
    assert found(backend, min_accuracy=0.6, max_accuracy=0.95) == [b]
    first = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    last = datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12)))
    assert len(found(backend, since=first, until=last)) == 4
    now = datetime.now(UTC)
    assert found(backend, since=now + timedelta(hours=1)) == []
    assert len(found(backend, since=now - timedelta(hours=1), until=now + timedelta(hours=1))) == 4


def test_ranges_of_any_metric(backend: Backend, definition: Definition):
    """Runs that have ended are found by the last value of each of their metrics."""
    ids = [reached(backend, definition.id, {"f1": f1, "a b": 2.0}) for f1 in (0.5, 0.7)]
    plain = reached(backend, definition.id, {})
    assert backend.runs.metrics.reached() == ["a b", "f1", "loss"]
    assert found(backend, metric="a b") == ids[::-1]
    assert found(backend, metric="f1", min_metric=0.5) == ids[::-1]
    assert found(backend, metric="f1", min_metric=0.6) == ids[1:]
    assert found(backend, metric="f1", max_metric=0.6) == ids[:1]
    assert found(backend, metric="loss", min_metric=0.25, max_metric=0.25) == [plain, *ids[::-1]]
    assert found(backend, metric="accuracy") == []
    assert backend.runs.get(ids[0]).summary.metrics["f1"] == 0.5
    assert backend.runs.delete(ids[0]).id == ids[0]
    assert found(backend, metric="f1") == ids[1:]


def reached(backend: Backend, definition_id: int, metrics: dict[str, float]) -> int:
    run = backend.runs.submit(ProfileSpec(definition_id))
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    told = RunSummary(loss=0.25, accuracy=nan, metrics=metrics)
    attempt.finish(RunState.SUCCEEDED, told)
    return run.id


def test_text_is_sought_in_name_note_owner_and_tags(backend: Backend, several):
    b, _, c, d = several
    backend.labels.change([b], Change(note="Half of 100% reached"))
    backend.labels.change([c], Change(tags=("Baseline",)))
    assert found(backend, text="100%") == [b]
    assert found(backend, text="BASE") == [c]
    assert found(backend, text="%") == [b]
    owner = backend.runs.get(d).owner
    assert owner == backend.settings.user
    assert owner == "" or len(found(backend, text=owner)) == 4
    assert found(backend, text="a\0") == []
    assert found(backend, owner="nobody") == []
    assert found(backend, tag="Baseline", states=(RunState.SUCCEEDED,)) == [c]
    assert found(backend, tag="Base") == []


def test_labels_change_what_is_named_and_nothing_else(backend: Backend, several):
    b, a, *_ = several
    before = backend.runs.get(b)
    assert backend.labels.change([b, a, 999], Change(starred=True, add=("x", "y"))) == 2
    assert backend.labels.change([b], Change(remove=("x", "not there"), note="n", name="new")) == 1
    assert backend.runs.get(b) == replace(before, starred=True, tags=("y",), note="n", name="new")
    assert backend.runs.get(a).tags == ("x", "y")
    assert found(backend, starred=True) == [a, b]
    assert list(backend.labels.tags()) == ["x", "y"]
    backend.labels.change([a], Change(tags=("z", " z ", "")))
    assert backend.runs.get(a).tags == ("z",)
    backend.labels.change([a, b], Change(tags=(), starred=False))
    assert (list(backend.labels.tags()), found(backend, starred=True)) == ([], [])


@pytest.mark.parametrize(
    "change",
    [
        Change(name=" "),
        Change(name="x" * 201),
        Change(note="x" * 10_001),
        Change(add=("x" * 41,)),
        Change(add=("a,b",)),
        Change(tags=tuple(map(str, range(MAX_TAGS + 1)))),
    ],
)
def test_faulty_labels_are_refused(backend: Backend, several, change: Change):
    before = backend.runs.get(several[0])
    with pytest.raises(InvalidInput) as caught:
        backend.labels.change([several[0]], change)
    assert caught.value.advice
    assert backend.runs.get(several[0]) == before


def test_counts_by_state(backend: Backend, several, definition: Definition):
    backend.runs.submit(ProfileSpec(definition.id))
    assert backend.runs.count() == {RunState.SUCCEEDED: 4, RunState.QUEUED: 1}


def test_several_by_id(backend: Backend, several):
    b, a, *_ = several
    assert [run.id for run in backend.runs.several([a, 999, b, 2**40, -1])] == [a, b]


def test_ids_that_no_database_holds_are_not_found(backend: Backend):
    for run_id in (0, -1, 2**31, 2**64):
        with pytest.raises(NotFound):
            backend.runs.get(run_id)


def test_the_same_again_is_a_new_run(backend: Backend, several):
    first = backend.runs.get(several[0])
    again = backend.runs.retry(first.id)
    assert (again.spec, again.name, again.origin_id) == (first.spec, first.name, first.id)
    assert again.state is RunState.QUEUED
    assert backend.runs.get(first.id) == first
    with pytest.raises(NotEnded, match="is queued"):
        backend.runs.retry(again.id)
    with pytest.raises(NotFound):
        backend.runs.submit(first.spec, origin=999)


def test_time_worked_is_kept_for_every_end(backend: Backend, several, definition: Definition):
    run = backend.runs.get(several[0])
    assert run.started_at is not None
    assert run.finished_at is not None
    waiting = backend.runs.submit(ProfileSpec(definition.id))
    backend.runs.cancel(waiting.id)
    assert ordered(backend, RunSort.SECONDS, True)[-1] == waiting.id


def test_a_curve_is_the_mean_of_neighbours(backend: Backend, run: Run):
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    steps = tuple(range(100))
    values = (*map(float, steps[:-1]), float("nan"))
    attempt.metrics(Metrics("loss", steps, values, tuple(map(float, steps))))
    whole = backend.runs.metrics.curve(run.id, "loss", 100)
    assert len(whole) == 100
    few = backend.runs.metrics.curve(run.id, "loss", 10)
    assert [point.step for point in few] == list(range(0, 100, 10))
    assert few[0].value == pytest.approx(4.5)
    assert few[-1].value == pytest.approx(94.0)  # the one that is not finite counts for nothing
    assert backend.runs.metrics.curve(run.id, "nothing", 10) == []
