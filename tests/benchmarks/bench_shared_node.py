"""Runs that share a node beside the same runs alone there: what one takes from the others.

    python -m tests.benchmarks.bench_shared_node [--write]

Emulated devices, so that a machine with few cores carries as many: compute is waiting, the
processes, messages and reports are real. One agent with 8 devices carries each run alone, then
all at once.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from backend.cluster.cluster import Cluster, Level  # noqa: E402
from backend.planning.plan import Partition, Plan, Stage  # noqa: E402
from backend.prediction.predict import predict  # noqa: E402
from backend.profiles.layer import Layer  # noqa: E402
from backend.profiles.profile import ModelGraph, Profile  # noqa: E402
from backend.runs.request.spec import TrainSpec  # noqa: E402
from backend.runs.run import Run  # noqa: E402
from backend.settings import Settings  # noqa: E402
from tests.benchmarks.evidence import evidence  # noqa: E402
from tests.integration.agent.conftest import Stack  # noqa: E402

LAYERS = tuple(Layer(f"l{n}", "", 0.004, 0.008, 10**5, 10**6) for n in range(4))
PROFILE = Profile("four", ModelGraph.chain(LAYERS), 4)
CLUSTER = Cluster((Level(8, 1e9),))
GROUPS = ((1,) * 8, (1, 1, 1, 1, 2, 2))
"""Devices of each run of a group: together all of the node's."""
SCALE, EPOCHS = 3.0, 12
HEAD = ["runs at once", "devices of this one", "alone, samples/s", "so, samples/s", "ratio"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Settings(home=Path(folder) / "home", node="bench", devices=8))
        stack.redis.start()
        stack.start_agent()
        try:
            evidence("emulation", "bench_shared_node").table("shared-node", HEAD, rows(stack))
        finally:
            stack.close()


def rows(stack: Stack) -> Iterator[list[str]]:
    definition = stack.backend.definitions.add_zoo("mlp")
    profile = stack.backend.profiles.add(PROFILE, definition.id)
    specs = {size: spec(stack, definition.id, profile.id, size) for size in (1, 2)}
    alone = {size: rate(stack.finished(each)) for size, each in specs.items()}
    for sizes in GROUPS:
        submitted = [stack.backend.runs.submit(specs[size]) for size in sizes]
        stack.wait(partial(begun, stack, submitted))
        for size, run in zip(sizes, submitted, strict=True):
            mine, found = alone[size], rate(stack.until_final(run.id))
            values = f"{mine:.1f}", f"{found:.1f}", f"{found / mine:.3f}"
            yield [str(len(sizes)), str(size), *values]


def begun(stack: Stack, runs: Sequence[Run]) -> bool:
    """Whether all of them hold their devices at once. Raises where one had ended before: there
    would be nothing to compare."""
    if any(stack.backend.runs.get(run.id).state.is_final for run in runs):
        raise RuntimeError("a run ended before all had begun; take more epochs")
    return set(stack.backend.runs.held().get("bench", {}).values()) == {run.id for run in runs}


def spec(stack: Stack, definition_id: int, profile_id: int, devices: int) -> TrainSpec:
    """A stage on each device."""
    each = len(LAYERS) // devices
    stages = tuple(Stage(n * each, (n + 1) * each, (n,)) for n in range(devices))
    plan = Plan("", Partition(stages), "pipedream", 4)
    kept = stack.backend.plans.save(profile_id, CLUSTER, predict(PROFILE, CLUSTER, plan))
    return TrainSpec(definition_id, kept.plan, kept.id, epochs=EPOCHS, emulate=SCALE)


def rate(run: Run) -> float:
    """Samples per second in its steady state."""
    if run.summary.samples_per_second is None:
        raise RuntimeError(f"run {run.id} is {run.state}: {run.error}")
    return run.summary.samples_per_second


if __name__ == "__main__":
    main()
