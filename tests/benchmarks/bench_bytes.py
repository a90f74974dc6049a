"""What rules that send fewer bytes cost in what is learned: accuracy after equal epochs, by the
processes of any run.

    python -m tests.benchmarks.bench_bytes [--models recommender,gpt_tiny] [--write]

Rows: two ranks, as two stages with a codec of messages, as two replicas with a codec of sums, or as
two sites. Bytes are those that the run counts, of both ranks, before headers, in training; `times
fewer` is beside plain messages of the same cut, or beside sums of the gradients after every update.
Every contestant has the optimizer, rate, seed and epochs of the others; none is tuned.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sites import read_sites
from backend.planning.thresholds import read_thresholds
from backend.runs.events import (
    ACCURACY,
    HELD_OUT_LOSS,
    SENT,
    SENT_PLAIN,
    SITES_SENT,
    SITES_SUMS,
    SUMS_PLAIN,
    SUMS_SENT,
)
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import ProfileSpec, TrainSpec
from tests.benchmarks.bench_local_losses import last, values
from tests.benchmarks.evidence import evidence
from tests.benchmarks.real_ranks import ROOT, profiled, told

CODECS = ("", "bf16", "int8", "top10", "top3")
SUMS = ("", "dct:keep=0.005,every=64")
SITES = ("gaia:threshold=0.01", "gaia:threshold=0.05", "gaia:threshold=0.2")
SITES += ("diloco:every=20", "diloco:every=100")


@dataclass(frozen=True)
class Learner:
    """A model, how it learns, and the layer in front of which two stages part."""

    file: Path
    cut: int
    microbatch: int
    epochs: int
    rule: OptimizerSpec


LEARNERS = {
    "recommender": Learner(
        ROOT / "tests" / "benchmarks" / "models" / "recommender.py",
        2,
        64,
        5,
        OptimizerSpec("adam", 5e-3),
    ),
    "gpt_tiny": Learner(
        ROOT / "workers" / "zoo" / "gpt_tiny.py", 0, 16, 5, OptimizerSpec("adam", 1e-3)
    ),
}
BATCH = 2


def main() -> None:
    kept = evidence("bytes", "bench_bytes")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(LEARNERS))
    parser.add_argument("--epochs", type=int, default=0, help="0: as many as each model has")
    given = parser.parse_args()
    head = ["model, two ranks", "rule", "MB per epoch", "times fewer", "accuracy, held out"]
    head += ["loss, held out", "samples/s", "load"]
    kept.table("bytes", head, rows(given))


def rows(given: argparse.Namespace) -> Iterator[list[str]]:
    for name in given.models.split(","):
        learner = LEARNERS[name]
        learner = replace(learner, epochs=given.epochs or learner.epochs)
        profile = profiled(learner.file, ProfileSpec(1, learner.microbatch, repetitions=3))
        stop = len(profile.layers)
        cut = learner.cut or stop // 2
        stages = Partition((Stage(0, cut, (0,)), Stage(cut, stop, (1,))))
        replicas = Partition((Stage(0, stop, (0, 1)),))
        alone = Partition((Stage(0, stop, (0,)),))
        plan = Plan("bench", stages, "1f1b-flush", learner.microbatch, BATCH)
        for codec in CODECS:
            coded = replace(plan, codecs=(codec,) if codec else ())
            yield row(learner, f"{name}, stages", codec, coded, (SENT, SENT_PLAIN))
        for text in SUMS:
            summed = replace(plan, partition=replicas, codec_of_sums=read_thresholds(text))
            yield row(learner, f"{name}, replicas", text, summed, (SUMS_SENT, SUMS_PLAIN))
        for text in SITES:
            sites = read_sites(text)
            assert sites is not None
            apart = replace(plan, partition=alone, batch=1, num_pipelines=2)
            apart = replace(apart, sites=replace(sites, devices=1))
            yield row(learner, f"{name}, sites", text, apart, (SITES_SENT, SITES_SUMS))


def row(learner: Learner, name: str, rule: str, plan: Plan, counted: tuple[str, str]) -> list[str]:
    spec = TrainSpec(1, plan, optimizer=learner.rule, epochs=learner.epochs)
    found = told(spec, learner.file)
    sent, plain = (values(found, each) for each in counted)
    told_bytes = [f"{sum(sent) / learner.epochs / 1e6:.3f}"] if sent else ["all"]
    fewer = f"{sum(plain) / sum(sent):.1f}" if sent and sum(sent) else "1" if not sent else "-"
    return [
        name,
        rule or "plain",
        *told_bytes,
        fewer,
        f"{100 * last(found, ACCURACY):.1f} %",
        f"{last(found, HELD_OUT_LOSS):.3f}",
        f"{median(values(found, 'throughput')):,.0f}",
        f"{os.getloadavg()[0]:.0f}",
    ]


if __name__ == "__main__":
    main()
