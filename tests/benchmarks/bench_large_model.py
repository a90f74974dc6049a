"""A language model that no rank ever holds whole: peak memory of each rank beside the prediction.

    python -m tests.benchmarks.bench_large_model [--width 2048] [--depth 24] [--ranks 4] [--write]

The plan is made from a profile by parts. The ranks are those of any training,
through `workers.runtime.main`, and their memory is what the kernel says of them: when training
begins, and at most. Of the prediction the process is what the profile measured beside its model.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import workers.zoo
from backend.cluster.presets import local
from backend.prediction.answer import rank
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.profiles.profile import Profile
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, ProfileSpec, TrainSpec
from tests.benchmarks.evidence import evidence
from tests.benchmarks.real_ranks import Watched, profiled, watched

MIB = 2**20
FILE = Path(workers.zoo.__file__).parent / "gpt2.py"
TOKENS, LENGTH, BATCH = 8192, 64, 4
HEAD = [
    "rank",
    "layers",
    "weights, MiB",
    "process",
    "predicted",
    "at the start",
    "at most",
    "ratio",
]


def main() -> None:
    page = evidence("prediction", "bench_large_model")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--depth", type=int, default=24)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=6)
    given = parser.parse_args()
    sizes = {"width": given.width, "depth": given.depth, "heads": given.width // 64}
    sizes |= {"tokens": TOKENS, "length": LENGTH, "context": LENGTH}
    page.table("large model", HEAD, rows(sizes, given.ranks, given.epochs))


def rows(sizes: dict[str, int], ranks: int, epochs: int) -> Iterator[list[str]]:
    spec = ProfileSpec(1, 1, repetitions=2, parameters=sizes, granularity="blocks", by_parts=True)
    profile = profiled(FILE, spec)
    question = Question(profile, local(ranks), "gpipe-balanced", "1f1b-flush", BATCH)
    prediction = rank(question)[0].prediction
    found = trained(prediction, profile, epochs)
    for number, stage in enumerate(prediction.plan.partition.stages):
        layers = profile.layers[stage.first : stage.stop]
        weights, predicted = sum(x.parameter_bytes for x in layers), prediction.memory_bytes[number]
        told = (weights, profile.process_bytes, predicted, found.starts[number])
        yield [
            str(number),
            f"{stage.first} to {stage.stop - 1}",
            *(f"{value / MIB:,.0f}" for value in (*told, found.peaks[number])),
            f"{found.peaks[number] / predicted:.2f}",
        ]
    shown = ", ".join(f"{loss:.2f}" for loss in found.losses)
    print(f"losses {shown}; begun after {found.begun:.0f} s", file=sys.stderr)


def trained(prediction: Prediction, profile: Profile, epochs: int) -> Watched:
    spec = TrainSpec(
        1,
        prediction.plan,
        data=DataSpec(samples=BATCH, held_out=0.0),
        optimizer=OptimizerSpec("momentum", 0.02),
        epochs=epochs,
        parameters=profile.parameters,
        granularity="blocks",
        tracing=profile.tracing,
        checkpoints=CheckpointSpec(seconds=0.0),
    )
    return watched(spec, FILE)


if __name__ == "__main__":
    main()
