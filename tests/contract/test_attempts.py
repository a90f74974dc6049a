"""What an attempt leaves behind, and that only the holder of a run can leave anything."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf, isnan, nan
from pathlib import Path

import pytest

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.errors import NotFound
from backend.hashing import FileGrew
from backend.pipeline.actions import Backward, Forward
from backend.pipeline.columns import encode
from backend.pipeline.timeline import Span, Timeline
from backend.planning.plan import Partition, Plan, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.attempts.fence import LeaseLost
from backend.runs.events import Metrics
from backend.runs.request.spec import ProfileSpec, StopSpec, TrainSpec
from backend.runs.run import Run, RunError, RunProgress, RunSummary
from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel
from backend.services.runs.attempt import Attempt
from backend.storage.runs.logs import MAX_CHARACTERS

PROFILE = Profile("tiny", ModelGraph.chain((Layer("a", "Linear", 1e-3, 2e-3, 64, 128),)), 8)


@pytest.fixture
def attempt(backend: Backend, run: Run) -> Attempt:
    claimed = backend.dispatch.claim(run.id, "here")
    assert claimed is not None
    return claimed


def spans(rank: int) -> list[Span]:
    return [
        Span(rank, 0, Forward(rank, 0), 0.0, 1.0),
        Span(rank, 1, Backward(rank, 0), 1.0, 3.0),
    ]


def test_log_lines_are_numbered_through(backend: Backend, attempt: Attempt):
    attempt.logs([(None, 1.5, "starting"), (0, 2.0, "hello")])
    attempt.logs([])
    attempt.logs([(1, 3.0, "again")])
    lines = backend.runs.logs.list(attempt.run.id)
    assert [(line.seq, line.time, line.rank, line.text) for line in lines] == [
        (1, 1.5, None, "starting"),
        (2, 2.0, 0, "hello"),
        (3, 3.0, 1, "again"),
    ]
    assert [line.seq for line in backend.runs.logs.list(attempt.run.id, after=1, limit=1)] == [2]


def test_every_line_is_read_in_portions(backend: Backend, attempt: Attempt):
    attempt.logs([(0, 0.0, str(number)) for number in range(2500)])
    texts = [line.text for line in backend.runs.logs.every(attempt.run.id)]
    assert texts == [str(number) for number in range(2500)]


@pytest.mark.parametrize("level", SandboxLevel)
def test_a_run_keeps_the_sandbox_that_its_ranks_had(
    level: SandboxLevel, backend: Backend, attempt: Attempt
):
    assert backend.runs.get(attempt.run.id).sandbox is None
    attempt.isolated(level)
    assert backend.runs.get(attempt.run.id).sandbox is level


def test_odd_and_endless_lines_are_kept_as_far_as_they_can(backend: Backend, attempt: Attempt):
    attempt.logs([(0, 0.0, "a\0b\udc80 ü"), (0, 0.0, "x" * (MAX_CHARACTERS + 1234))])
    odd, endless = backend.runs.logs.list(attempt.run.id)
    assert odd.text == "a\N{REPLACEMENT CHARACTER}b? ü"
    assert endless.text.endswith("… (1,234 more characters)")


def test_threads_that_log_at_once_lose_no_line(backend: Backend, attempt: Attempt):
    def log(number: int) -> None:
        attempt.logs([(number, 0.0, f"{number} a"), (number, 0.0, f"{number} b")])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(log, range(40)))
    lines = backend.runs.logs.list(attempt.run.id)
    assert [line.seq for line in lines] == list(range(1, 81))
    assert [line.text for line in lines[::2]] == [f"{line.rank} a" for line in lines[1::2]]


def test_what_patience_has_seen_is_told_to_the_next_attempt(
    backend: Backend, attempt: Attempt, definition: Definition
):
    assert attempt.watched() == ()  # nothing is watched
    plan = Plan("one", Partition((Stage(0, 1, (0,)),)), "gpipe", 4)
    spec = TrainSpec(definition.id, plan, stop=StopSpec(2, "f1", "larger"))
    claimed = backend.dispatch.claim(backend.runs.submit(spec).id, "here")
    assert claimed is not None
    claimed.metrics(Metrics("f1", (5, 3), (0.25, 0.5), (1.0, 1.0)))
    claimed.metrics(Metrics("f1", (7,), (nan,), (1.0,)))
    claimed.metrics(Metrics("loss", (7,), (9.0,), (1.0,)))
    assert claimed.watched() == (0.5, 0.25)


def test_metrics_come_back_by_step(backend: Backend, attempt: Attempt):
    attempt.metrics(Metrics("loss", (3, 4), (0.3, float("nan")), (13.0, 14.0), epoch=1))
    attempt.metrics(Metrics("loss", (1, 2), (0.1, inf), (11.0, 12.0)))
    attempt.metrics(Metrics("accuracy", (), (), ()))
    points = backend.runs.metrics.list(attempt.run.id, "loss")
    assert [(p.step, p.epoch, p.time) for p in points] == [
        (1, 0, 11.0),
        (2, 0, 12.0),
        (3, 1, 13.0),
        (4, 1, 14.0),
    ]
    assert [p.value for p in points[::2]] == [0.1, 0.3]
    assert all(isnan(p.value) for p in points[1::2])
    assert list(backend.runs.metrics.names(attempt.run.id)) == ["loss"]


def test_the_newest_points_and_the_means_of_the_newest_epochs(backend: Backend, attempt: Attempt):
    run_id, runs = attempt.run.id, backend.runs
    assert (runs.metrics.last(run_id, "loss", 3), runs.metrics.epoch_means(run_id, "loss", 2)) == (
        [],
        [],
    )
    for epoch, values in enumerate(((9.0, 9.0), (3.0, float("nan")), (1.0, 2.0, 3.0))):
        steps = tuple(range(3 * epoch, 3 * epoch + len(values)))
        times = tuple(map(float, steps))
        attempt.metrics(Metrics("loss", steps, values, times, epoch))
    newest = runs.metrics.last(run_id, "loss", 4)
    assert [(point.step, point.epoch) for point in newest] == [(4, 1), (6, 2), (7, 2), (8, 2)]
    assert isnan(newest[0].value)
    assert newest[1:] == runs.metrics.list(run_id, "loss")[-3:]
    assert runs.metrics.epoch_means(run_id, "loss", 2) == [3.0, 2.0]
    assert runs.metrics.epoch_means(run_id, "loss") == [2.0]


def test_a_timeline_is_put_together_from_its_batches(backend: Backend, attempt: Attempt):
    for rank in (1, 0):
        attempt.spans("measured", rank, 0, encode(Timeline.of(spans(rank))), 2)
    attempt.spans("measured", 0, 3, encode(Timeline.of(spans(0)[1:])), 1)
    attempt.spans("measured", 0, 3, encode(Timeline.of(spans(0)[:1])), 1)
    first = backend.runs.spans.timeline(attempt.run.id, "measured", 0)
    assert first is not None
    assert list(first.spans) == spans(0) + spans(1)
    last = backend.runs.spans.timeline(attempt.run.id, "measured")
    assert last is not None
    assert list(last.spans) == spans(0)
    assert list(backend.runs.spans.segments(attempt.run.id)) == [0, 3]
    assert backend.runs.spans.timeline(attempt.run.id, "predicted") is None


def test_an_artifact_is_kept_by_content(backend: Backend, attempt: Attempt, tmp_path: Path):
    file = tmp_path / "weights.bin"
    file.write_bytes(b"12345")
    kept = attempt.artifact("weights", file)
    file.unlink()
    assert kept.sha256 == hashlib.sha256(b"12345").hexdigest()
    assert kept.size == 5
    assert list(backend.runs.artifacts.list(attempt.run.id)) == [kept]
    assert backend.runs.artifacts.path(attempt.run.id, "weights").read_bytes() == b"12345"
    assert [path.name for path in kept.path.parent.iterdir()] == [kept.sha256]


SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        (["log", "model.safetensors"], ["model.safetensors"]),
        (["config.json", INDEX, *SHARDS], [*SHARDS, INDEX]),
        (["model.safetensors", INDEX, "stage-0.safetensors"], ["model.safetensors"]),
        ([INDEX, "../out.safetensors", *SHARDS], [*SHARDS, INDEX]),
    ],
    ids=["one file", "shards", "both, as runs of before", "a name that leads away"],
)
def test_a_trained_model_is_one_file_or_shards(
    backend: Backend, attempt: Attempt, tmp_path: Path, kept: list[str], found: list[str]
):
    (tmp_path / "file").write_bytes(b"12345")
    for name in kept:
        attempt.artifact(name, tmp_path / "file")
    assert [each.name for each in backend.runs.artifacts.trained_model(attempt.run.id)] == found
    assert backend.runs.artifacts.with_trained_model([attempt.run.id, 99]) == {attempt.run.id}


def test_a_run_without_a_trained_model(backend: Backend, attempt: Attempt, tmp_path: Path):
    (tmp_path / "file").write_bytes(b"12345")
    attempt.artifact(SHARDS[0], tmp_path / "file")
    assert backend.runs.artifacts.with_trained_model([attempt.run.id]) == set()
    with pytest.raises(NotFound, match=r"no file 'model\.safetensors'"):
        backend.runs.artifacts.trained_model(attempt.run.id)


def test_a_newer_artifact_takes_the_place_of_its_name(backend, attempt: Attempt, tmp_path: Path):
    for content in (b"old", b"new"):
        (tmp_path / "file").write_bytes(content)
        attempt.artifact("weights", tmp_path / "file")
    assert len(backend.runs.artifacts.list(attempt.run.id)) == 1
    assert backend.runs.artifacts.path(attempt.run.id, "weights").read_bytes() == b"new"


def test_an_artifact_with_more_bytes_than_were_counted_is_refused(
    backend: Backend, attempt: Attempt, tmp_path: Path
):
    (tmp_path / "file").write_bytes(b"12345")
    attempt.artifact("whole", tmp_path / "file", most=5)
    with pytest.raises(FileGrew, match="had 4 bytes"):
        attempt.artifact("grown", tmp_path / "file", most=4)
    assert [each.name for each in backend.runs.artifacts.list(attempt.run.id)] == ["whole"]
    assert len(list(backend.settings.artifacts_folder.iterdir())) == 1


def test_a_missing_file_is_not_found(backend: Backend, attempt: Attempt, tmp_path: Path):
    with pytest.raises(NotFound, match="no file"):
        attempt.artifact("weights", tmp_path / "nothing")
    with pytest.raises(NotFound, match="weights"):
        backend.runs.artifacts.path(attempt.run.id, "weights")


def test_a_measured_profile_belongs_to_run_and_definition(backend: Backend, attempt: Attempt):
    stored = backend.profiles.get(attempt.profile(PROFILE))
    assert stored.profile == PROFILE
    assert stored.run_id == attempt.run.id
    assert stored.definition_id == attempt.run.spec.definition_id


WRITES: dict[str, Callable[[Attempt, Path], object]] = {
    "beat": lambda attempt, _: attempt.beat(),
    "running": lambda attempt, _: attempt.running(),
    "progress": lambda attempt, _: attempt.progress(RunProgress("train", 1, 2)),
    "logs": lambda attempt, _: attempt.logs([(0, 0.0, "late")]),
    "metrics": lambda attempt, _: attempt.metrics(Metrics("loss", (1,), (1.0,), (1.0,))),
    "spans": lambda attempt, _: attempt.spans("measured", 0, 0, encode(Timeline.of(spans(0))), 2),
    "artifact": lambda attempt, file: attempt.artifact("weights", file),
    "profile": lambda attempt, _: attempt.profile(PROFILE),
    "finish": lambda attempt, _: attempt.finish(RunState.FAILED, RunSummary(), RunError("X", "y")),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_stale_write_is_refused_and_changes_nothing(
    backend: Backend, attempt: Attempt, tmp_path: Path, write: str
):
    run_id, fence = attempt.run.id, attempt.fence
    (tmp_path / "file").write_bytes(b"late")

    def refused() -> None:
        before = backend.runs.get(run_id)
        with pytest.raises(LeaseLost):
            WRITES[write](attempt, tmp_path / "file")
        assert backend.runs.get(run_id) == before
        assert not backend.runs.logs.list(run_id)
        assert not backend.runs.metrics.list(run_id, "loss")
        assert not backend.runs.spans.segments(run_id)
        assert not backend.runs.artifacts.list(run_id)
        assert not backend.profiles.list()
        assert not backend.settings.artifacts_folder.exists()

    for stale in (replace(fence, token="0" * 32), replace(fence, attempt=2)):
        attempt.fence = stale
        refused()
    attempt.fence = fence
    attempt.finish(RunState.CANCELLED, RunSummary())
    refused()


def test_writes_of_one_run_do_not_show_in_another(
    backend: Backend, attempt: Attempt, definition: Definition
):
    other = backend.runs.submit(ProfileSpec(definition.id))
    attempt.logs([(0, 0.0, "mine")])
    attempt.metrics(Metrics("loss", (1,), (1.0,), (1.0,)))
    assert not backend.runs.logs.list(other.id)
    assert not backend.runs.metrics.names(other.id)
