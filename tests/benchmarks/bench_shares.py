"""Shares of replicas on unequal devices: what they gain, predicted and emulated.

    python -m tests.benchmarks.bench_shares [--seconds 10] [--compared] [--write]

The first table: data parallelism under 1F1B with flush with and without shares, run by real
processes on emulated devices of which one is faster. The second, alone with `--compared`: AccPar's
comparison, predicted. Needs the published profiles beside the repository (../shared/profiles).
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "unit" / "planning")]

from published import FOLDER, at_batch, load  # noqa: E402

from backend.cluster.cluster import Cluster, Device, Level  # noqa: E402
from backend.codec import to_json  # noqa: E402
from backend.pipeline.columns import decode  # noqa: E402
from backend.pipeline.timeline import Timeline  # noqa: E402
from backend.planning.baselines import data_parallel, straight  # noqa: E402
from backend.planning.plan import Plan  # noqa: E402
from backend.planning.sharing_out import shared_out  # noqa: E402
from backend.prediction.answer import rank  # noqa: E402
from backend.prediction.channel_splits import channel_splits  # noqa: E402
from backend.prediction.predict import predict  # noqa: E402
from backend.prediction.question import Question  # noqa: E402
from backend.prediction.shapes import microbatch_unit, steady_shape  # noqa: E402
from backend.prediction.steady import seconds_per_microbatch  # noqa: E402
from backend.profiles.profile import Profile  # noqa: E402
from backend.runs.job import Emulation, Job  # noqa: E402
from backend.runs.request.spec import TrainSpec  # noqa: E402
from tests.benchmarks.evidence import evidence  # noqa: E402
from tests.benchmarks.ranks import launch  # noqa: E402

SPEEDS = ((1.0, 2.0), (1.0, 1.0, 4.0))
BATCH, SCHEDULE = 12, "1f1b-flush"
MODELS = {"alexnet": "AlexNet", "vgg16": "VGG-16", "resnet50": "ResNet-50"}
RATIO = 420 / 180
"""TFLOP/s of a TPU-v3 board over those of a TPU-v2 board, AccPar's two types."""
EMULATED = (
    "speeds",
    "shares",
    "formula",
    "predicted gain",
    "emulated gain",
    "equal: emulated / predicted",
    "shares: emulated / predicted",
)
COMPARED = (
    *("model", "data parallel", "even splits", "with shares", "and splits", "in best's updates"),
    *("straight", "best", "best and splits", "best's plan"),
)
RANK = Path(__file__).with_name("emulated_rank.py")
PORT = 29_750


def main() -> None:
    if not FOLDER.is_dir():
        return print(f"no published profiles at {FOLDER}: nothing to run")
    page = evidence("shares", "bench_shares")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--compared", action="store_true")
    given = parser.parse_args()
    if not given.compared:
        page.table("shares", EMULATED, emulated(given.seconds))
    page.table("accpar", COMPARED, compared())
    return None


def unequal(*speeds: float, bandwidth: float = 12e9) -> Cluster:
    each = tuple(Device(f"x{speed:.3g}", speed=speed) for speed in speeds)
    return Cluster((Level(len(speeds), bandwidth),), each[0], each)


def everywhere(profile: Profile, cluster: Cluster) -> Plan:
    cut = data_parallel(profile, cluster)
    return Plan("", cut, SCHEDULE, profile.microbatch, BATCH)


def emulated(seconds: float) -> Iterator[tuple[str, ...]]:
    """A row per cluster: the gain by the formula, predicted and emulated."""
    profile = at_batch(load("resnet50"), 32)
    for speeds in SPEEDS:
        cluster = unequal(*speeds)
        equal = everywhere(profile, cluster)
        plans = {"equal": equal, "shares": shared_out(equal, cluster)}
        with tempfile.TemporaryDirectory(prefix="stageflow-shares-") as folder:
            jobs = {
                name: _job(profile, cluster, plan, seconds, Path(folder) / name)
                for name, plan in plans.items()
            }
            files = [str(at / "job.json") for at in jobs.values()]
            launch(str(RANK), files, len(speeds), PORT)
            measured = {name: _rate(plans[name], at) for name, at in jobs.items()}
        told = {n: predict(profile, cluster, p).samples_per_second for n, p in plans.items()}
        yield (
            ", ".join(f"{speed:g}" for speed in speeds),
            plans["shares"].partition.label,
            f"{sum(speeds) / (len(speeds) * min(speeds)):.2f}x",
            f"{told['shares'] / told['equal']:.3f}x",
            f"{measured['shares'] / measured['equal']:.3f}x",
            f"{measured['equal'] / told['equal']:.3f}",
            f"{measured['shares'] / told['shares']:.3f}",
        )


def _job(profile: Profile, cluster: Cluster, plan: Plan, seconds: float, folder: Path) -> Path:
    samples = steady_shape(plan).num_microbatches * profile.microbatch
    rate = predict(profile, cluster, plan).samples_per_second
    emulation = Emulation(profile, cluster, seconds * rate / samples)
    folder.mkdir()
    devices = plan.partition.num_devices
    spec = TrainSpec(1, plan, epochs=1)
    whole = Job(1, 1, folder.name, spec, "", str(folder), devices, emulation=emulation)
    (folder / "job.json").write_bytes(to_json(Job, whole))
    return folder


def _rate(plan: Plan, folder: Path) -> float:
    files = sorted(folder.glob("spans-*.arrow"))
    timeline = Timeline.joined([decode(file.read_bytes()) for file in files])
    each = seconds_per_microbatch(timeline, steady_shape(plan), microbatch_unit(plan))
    return plan.microbatch / each


def compared() -> Iterator[tuple[str, ...]]:
    """A row per model: samples/s over those of data parallelism with equal shares, on four devices
    of each type."""
    cluster = unequal(*[1.0] * 4, *[RATIO] * 4, bandwidth=1e9)
    for model, title in MODELS.items():
        profile = at_batch(load(model), 64)
        question = Question(profile, cluster, "best", SCHEDULE, BATCH)
        equal = everywhere(profile, cluster)
        base = question.predict(equal).samples_per_second
        (answer,) = rank(question)
        best = answer.prediction.plan
        shared = shared_out(equal, cluster)
        as_best = shared_out(replace(equal, batch=best.batch), cluster)
        even = replace(equal, partition=straight(profile, cluster))
        rates = (
            _with_splits(question, equal),
            question.predict(shared).samples_per_second,
            _with_splits(question, shared),
            _with_splits(question, as_best),
            question.predict(even).samples_per_second,
            question.predict(best).samples_per_second,
            _with_splits(question, best),
        )
        gains = (f"{rate / base:.2f}x" for rate in rates)
        yield (title, "1x", *gains, f"{best.label}, {best.batch} an update")


def _with_splits(question: Question, plan: Plan) -> float:
    """Samples/s with the layers split that planning would split."""
    split = channel_splits(question, plan)
    return split.samples_per_second if split else question.predict(plan).samples_per_second


if __name__ == "__main__":
    main()
