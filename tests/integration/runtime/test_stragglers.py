"""A real rank that is stopped for most of the time, as a slower device would be: it is named."""

from pathlib import Path

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.codec import from_json
from backend.comparison.shared_cores import taken_by_others
from backend.comparison.stragglers import MeasuredSegment, paces
from backend.pipeline.columns import decode
from backend.pipeline.timeline import Timeline
from backend.prediction.predict import predicted_durations
from backend.profiles.profile import Profile
from backend.runs.events import CoreUse, ProfileReady, Spans
from backend.runs.request.spec import DataSpec, ProfileSpec

STOPS = """
import os, signal, time
rank = os.getppid()
if os.geteuid() == 0:
    os.nice(-10)  # on time, whoever else computes
while os.getppid() == rank:
    for signal_number, seconds in ((signal.SIGSTOP, 0.028), (signal.SIGCONT, 0.004)):
        os.kill(rank, signal_number)
        time.sleep(seconds)
"""
MODEL = f"""
import os, subprocess, sys
if os.environ.get("RANK") == "1":
    subprocess.Popen([sys.executable, "-c", {STOPS!r}])
def model():
    torch.manual_seed(0)
    wide = [layer for _ in range(8) for layer in (nn.Linear(512, 512), nn.ReLU())]
    return nn.Sequential(*wide, nn.Linear(512, 4))
def example(batch):
    return torch.randn(batch, 512), torch.randint(4, (batch,))
"""
CLUSTER = Cluster((Level(2, 1e9),))


@pytest.mark.slow
def test_a_rank_that_is_stopped_most_of_the_time_is_named(write_job, train_spec, ended) -> None:
    asked = ProfileSpec(1, microbatch=256, repetitions=3)
    codes, found, text = ended(write_job(MODEL, asked), module="workers.profiler.main")
    assert codes == [0], text
    (ready,) = [event for event in found if isinstance(event, ProfileReady)]
    profile: Profile = from_json(Profile, Path(ready.path).read_bytes())
    spec = train_spec(0, 8, 17, epochs=1, microbatch=256, data=DataSpec(samples=256 * 60))
    codes, found, text = ended(write_job(MODEL, spec), size=2)
    assert codes == [0, 0], text
    spans = [event for event in found if isinstance(event, Spans)]
    kinds = {
        kind: Timeline.joined(
            [decode(Path(event.path).read_bytes()) for event in spans if event.kind == kind]
        )
        for kind in ("measured", "loading")
    }
    cores = taken_by_others([e for e in found if isinstance(e, CoreUse)], in_turns=False)
    durations = predicted_durations(profile, CLUSTER, spec.plan)
    segment = MeasuredSegment(kinds["measured"], (kinds["loading"],))
    judged = paces([segment], durations, spec.plan, cores.by_rank if cores else {})
    assert judged is not None
    first, second = judged.ranks
    assert [pace.rank for pace in judged.stragglers] == [1]
    assert second.slowdown / first.slowdown > 1.5
