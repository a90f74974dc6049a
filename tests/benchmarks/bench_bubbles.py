"""The bubble of schedules on four emulated devices, predicted and measured.

    python -m tests.benchmarks.bench_bubbles [--rounds 3] [--write]

Eight equal layers on four devices whose links cost next to nothing: two layers a stage, or one a
chunk where a schedule has two chunks, 8 microbatches a batch. Four real processes run the program
and wait as long as its computing takes (docs/guide/emulation.md), so that two cores are enough.
A bubble is the share of the ranks' time that is not computing, by the slope over the second half
of a run; rounds take turns over the schedules, and the median counts.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from backend.cluster.cluster import Cluster, Device, Level
from backend.pipeline.schedules.catalog import schedule
from backend.planning.balanced import even_stops, interleaved, side_by_side
from backend.planning.plan import Plan
from backend.prediction.kept_orders import with_order
from backend.prediction.predict import predict
from backend.prediction.question import Question
from backend.prediction.shapes import microbatch_unit, steady_shape
from backend.prediction.steady import seconds_per_microbatch
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.job import Emulation
from tests.benchmarks.emulated_jobs import FILE, emulated_job, measured_timeline
from tests.benchmarks.evidence import evidence
from tests.benchmarks.ranks import launch

RANKS, BATCH, SCALE, PORT = 4, 8, 8.0, 29_760
SCHEDULES = (
    *("gpipe", "1f1b-flush", "interleaved", "zb-h1", "zb-v", "v-half", "v-min"),
    *("dualpipe-v", "interleaved-zb"),
)
LAYERS = tuple(
    Layer(f"l{n}", "Linear", 5e-3, 10e-3, 10**4, 10**4, backward_input=5e-3) for n in range(8)
)
PROFILE = Profile("eight", ModelGraph.chain(LAYERS), 4)
CLUSTER = Cluster((Level(RANKS, 1e10),), Device("V100"))
RANK = Path(__file__).with_name("emulated_rank.py")
HEAD = ["schedule", "predicted", "measured, median", "from", "to", "seconds, measured / predicted"]


def main() -> None:
    found = evidence("emulation", "bench_bubbles")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    found.table("bubbles", HEAD, rows(parser.parse_args().rounds))


def rows(rounds: int) -> Iterator[list[str]]:
    plans = {name: plan(name) for name in SCHEDULES}
    plans["synthesised"] = with_order(Question(PROFILE, CLUSTER, batch=BATCH), plan("synthesised"))
    with tempfile.TemporaryDirectory(prefix="stageflow-bubbles-") as folder:
        emulation = Emulation(PROFILE, CLUSTER, SCALE)
        runs = {
            name: [
                emulated_job(one, emulation, Path(folder) / f"{name}-{n}") for n in range(rounds)
            ]
            for name, one in plans.items()
        }
        for turn in zip(*runs.values(), strict=True):
            launch(str(RANK), [str(at / FILE) for at in turn], RANKS, PORT)
        for name, one in plans.items():
            said = predict(PROFILE, CLUSTER, one)
            took = [one.batch * measured(one, at) for at in runs[name]]
            work = BATCH * sum(layer.forward + layer.backward for layer in LAYERS) / RANKS
            bubbles = [1 - work / each for each in took]
            shares = [1 - work / said.seconds_per_minibatch, median(bubbles)]
            yield [
                name,
                *(f"{each:.1%}" for each in (*shares, min(bubbles), max(bubbles))),
                f"{median(took) / said.seconds_per_minibatch:.3f}",
            ]


def plan(name: str) -> Plan:
    """The layers in order over the devices, as many chunks each as the schedule has."""
    straight = side_by_side(even_stops(PROFILE, RANKS))
    rule = schedule(name)
    partition = interleaved(PROFILE, RANKS, 1, 2) if rule.chunked and not rule.kept else straight
    return Plan("", partition, "zb-h1", PROFILE.microbatch, BATCH).under(name, BATCH)


def measured(one: Plan, folder: Path) -> float:
    """Seconds per microbatch of the emulated devices, by the rules of the prediction."""
    timeline = measured_timeline(folder)
    return seconds_per_microbatch(timeline, steady_shape(one), microbatch_unit(one))


if __name__ == "__main__":
    main()
