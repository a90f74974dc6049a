"""A run beside busy loops on the same cores: what they took is told, and the prediction at the
share that the ranks had is closer to what was measured than that on cores of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backend.cluster.presets import local
from backend.codec import from_json
from backend.comparison.shared_cores import at_share, taken_by_others
from backend.pipeline.columns import decode
from backend.prediction.predict import predict
from backend.profiles.profile import Profile
from backend.runs.events import CoreUse, ProfileReady, Spans
from backend.runs.request.spec import DataSpec, ProfileSpec, TrainSpec
from workers.supervisor.reporting.measured import summarise
from workers.supervisor.reporting.results import Results

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="Linux counts"),
]
MODEL = """
def model():
    torch.manual_seed(0)
    wide = [layer for _ in range(6) for layer in (nn.Linear(512, 512), nn.ReLU())]
    return nn.Sequential(*wide, nn.Linear(512, 4))
def example(batch):
    return torch.randn(batch, 512), torch.randint(4, (batch,))
"""


@contextmanager
def on_two_cores_with_loops() -> Iterator[None]:
    """Whatever is started meanwhile shares two cores with loops that never wait."""
    allowed = os.sched_getaffinity(0)
    cores = set(sorted(allowed)[:2])
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in cores]
    try:
        for core, loop in zip(cores, loops, strict=True):
            os.sched_setaffinity(loop.pid, {core})
        os.sched_setaffinity(0, cores)
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        for loop in loops:
            loop.kill()
            loop.wait()


def test_the_prediction_at_the_ranks_share_is_closer(write_job, train_spec, ended) -> None:
    asked = ProfileSpec(1, microbatch=64, repetitions=3)
    codes, found, text = ended(write_job(MODEL, asked), module="workers.profiler.main")
    assert codes == [0], text
    (ready,) = [event for event in found if isinstance(event, ProfileReady)]
    profile: Profile = from_json(Profile, Path(ready.path).read_bytes())
    assert profile.cores_taken is not None
    spec = train_spec(0, 6, 13, epochs=2, microbatch=64, data=DataSpec(samples=64 * 30))
    with on_two_cores_with_loops():
        codes, found, text = ended(write_job(MODEL, spec), size=2)
    assert codes == [0, 0], text
    _is_laid_beside_what_was_left(spec, profile, found)


def _is_laid_beside_what_was_left(spec: TrainSpec, profile: Profile, found) -> None:
    told = [(use.rank, use.segment) for use in found if isinstance(use, CoreUse)]
    assert sorted(told) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    results = Results()
    for event in found:
        results.note(event, spec)
        if isinstance(event, Spans) and event.kind == "measured":
            results.note_spans(event.rank, event.segment, decode(Path(event.path).read_bytes()))
    summary = summarise(spec, results)
    assert [use.rank for use in summary.cores] == [0, 1]
    for use in summary.cores:
        assert 0 < use.cpu <= use.process
        assert use.cpu + use.waited <= use.seconds + 0.01
    shared = taken_by_others(summary.cores, in_turns=False)
    assert shared is not None
    assert shared.is_said
    assert shared.taken > 0.2
    assert shared.others > 0.5
    measured, cluster = summary.seconds_per_minibatch, local(2)
    assert measured is not None
    alone = predict(profile, cluster, spec.plan).seconds_per_minibatch
    left = at_share(profile, cluster, spec.plan, shared).seconds_per_minibatch
    assert alone < left
    assert abs(measured - left) < abs(measured - alone)
