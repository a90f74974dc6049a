"""What checkpoints cost a run: the same training without any and with one every few seconds.

    python tests/soak/overhead.py [--seconds 5] [--pairs 2]

Taking turns; the share is reckoned for the interval of the default, 30 s.
"""

import argparse
import textwrap
from dataclasses import replace
from statistics import median

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, TrainSpec
from tests.soak.site import Site, site

MODEL = textwrap.dedent("""
    import torch
    from torch import nn
    def model():
        wide = [part for _ in range(5) for part in (nn.Linear(1536, 1536), nn.ReLU())]
        return nn.Sequential(*wide, nn.Linear(1536, 10))
    def example(batch):
        return torch.rand(batch, 1536), torch.randint(10, (batch,))
    def loss(output, target):
        return nn.functional.cross_entropy(output, target)
""")
"""11.8 million weights: 142 MB with Adam's two moments."""
DEFAULT = CheckpointSpec().seconds


def training(there: Site, seconds: float, epochs: int) -> TrainSpec:
    definition = there.backend.definitions.add("wide.py", MODEL.encode())
    plan = Plan("two", Partition((Stage(0, 6, (0,)), Stage(6, 11, (1,)))), "1f1b-flush", 32, 4)
    return TrainSpec(
        definition.id,
        plan,
        data=DataSpec("synthetic", 2048),
        optimizer=OptimizerSpec("adam", 1e-4),
        epochs=epochs,
        checkpoints=CheckpointSpec(seconds=seconds),
    )


def took(there: Site, spec: TrainSpec) -> tuple[float, int]:
    """Seconds from the first minibatch to the last, and how many checkpoints lay between."""
    run = there.final(there.backend.runs.submit(spec).id)
    assert run.error is None, run.error
    times = [point.time for point in there.backend.runs.metrics.list(run.id, "loss")]
    kept = there.backend.runs.checkpoints.list(run.id)
    return max(times) - min(times), len(kept)


def main() -> None:
    """Print each pair, and the cost of one checkpoint as a share of 30 s."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    asked = parser.parse_args()
    with site() as there:
        there.start("a")
        without = training(there, 0.0, asked.epochs)
        often = replace(CheckpointSpec(seconds=asked.seconds), keep=1000)
        shares = []
        for _ in range(asked.pairs):
            plain, _ = took(there, without)
            saving, count = took(there, replace(without, checkpoints=often))
            each = (saving - plain) / max(1, count)
            shares.append(each / DEFAULT)
            print(f"{plain:.2f} s without, {saving:.2f} s with {count}: {each:.3f} s each")
        print(f"every {DEFAULT:.0f} s: {median(shares):.2%} of the run's time")


if __name__ == "__main__":
    main()
