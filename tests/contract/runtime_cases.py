"""The training runs that the runtime's contract compares with the sequential reference."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from backend.pipeline.schedules.catalog import SCHEDULES
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.spec import OptimizerSpec, TrainSpec

HERE = Path(__file__).parent
MICROBATCH, BATCH, EPOCHS, SEED, SAMPLES = 2, 4, 2, 7, 25
RATES = {"sgd": 0.2, "momentum": 0.1, "adam": 0.02, "adamw": 0.02}
EXTRAS = {
    "": {},
    "decay": {"weight_decay": 0.1},
    "clip": {"clip_norm": 0.05},
    "rates": {"warm_up": 0.5, "decay": "cosine"},
}
STASHING = ("pipedream", "pipedream-vertical-sync", "pipedream-naive")
FLUSHING = ("gpipe", "1f1b-flush", "afp", "zb-h1", "zb-h2", "interleaved")
CUTS = {
    "chain": {1: [], 2: [2], 3: [2, 3], 4: [1, 2, 4]},
    "residual": {1: [], 2: [3], 3: [3, 5], 4: [1, 3, 5]},
    "noisy": {1: [], 2: [4], 3: [4, 6], 4: [2, 4, 6]},
    "branched": {1: [], 2: [5], 3: [5, 8], 4: [2, 5, 8]},
}
"""Per model and number of stages the first layers of all stages but the first."""
PREFIXES = {
    "chain": list("01234"),
    "noisy": list("012345678"),
    "residual": ["a", "", "b", "", "c", "scale", "", "", "d"],
    "branched": ["stem", "", "right", "", "right_more", "left", "", "left_more", "", "", "head"],
}
"""The parameters' prefix of each layer, in the plan's order."""
ORDERS = {"branched": (0, 1, 4, 5, 7, 2, 3, 6, 8, 9, 10)}
"""The layers as the plan takes them, where that is not the model's order: one branch, then the
other, whose layers take turns in the model."""


@dataclass(frozen=True)
class Case:
    model: str
    schedule: str
    optimizer: str
    replicas: tuple[int, ...]
    chunks: int = 1
    lanes: int = 1
    recompute: bool = False
    extra: str = ""

    @property
    def name(self) -> str:
        shape = ".".join(map(str, self.replicas)) + f"x{self.chunks}" * (self.chunks > 1)
        more = [f"{self.lanes}lanes"] * (self.lanes > 1) + ["again"] * self.recompute
        parts = [self.model, self.schedule, self.optimizer, shape, *more, self.extra]
        return "-".join(part for part in parts if part)

    @property
    def num_ranks(self) -> int:
        return sum(self.replicas) * self.lanes

    @property
    def num_stages(self) -> int:
        return len(self.replicas) * self.chunks

    @property
    def stage_replicas(self) -> tuple[int, ...]:
        """Replicas of each stage of the model."""
        return self.replicas * self.chunks

    @property
    def bounds(self) -> list[int]:
        """The first layer of each stage, and the number of layers."""
        return [0, *CUTS[self.model][self.num_stages], len(PREFIXES[self.model])]

    @property
    def microbatches(self) -> int:
        """Of an epoch: whole batches for every lane."""
        return SAMPLES // MICROBATCH // self.unit * self.unit

    @property
    def unit(self) -> int:
        """Microbatches of a round: one batch for every lane."""
        return BATCH * self.lanes

    def stage_of(self, parameter: str) -> int:
        layer = PREFIXES[self.model].index(parameter.split(".")[0])
        return sum(layer >= bound for bound in self.bounds[1:])

    def spec(self) -> TrainSpec:
        first = [sum(self.replicas[:position]) for position in range(len(self.replicas))]
        devices = [tuple(range(a, a + n)) for a, n in zip(first, self.replicas, strict=True)]
        stages = tuple(
            Stage(first, stop, on)
            for first, stop, on in zip(
                self.bounds, self.bounds[1:], devices * self.chunks, strict=False
            )
        )
        plan = Plan(
            "test",
            Partition(stages, ORDERS.get(self.model, ()), self.chunks),
            self.schedule,
            MICROBATCH,
            BATCH,
            recompute=self.recompute,
            lanes=self.lanes,
        )
        optimizer = OptimizerSpec(self.optimizer, RATES[self.optimizer], **EXTRAS[self.extra])
        return TrainSpec(1, plan, optimizer=optimizer, epochs=EPOCHS, seed=SEED)

    def definition(self) -> ModuleType:
        file = HERE / "models" / f"{self.model}.py"
        spec = importlib.util.spec_from_file_location(self.model, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def _shapes(schedule: str) -> tuple[tuple[tuple[int, ...], int], ...]:
    """(replicas, chunks) that a schedule is tried on."""
    if schedule == "interleaved":
        return ((1, 1), 2), ((2,), 2), ((1,), 3), ((2, 2), 2), ((1, 1), 1)
    straight = ((1, 1), (2,), (1, 1, 1), (2, 1), (1, 2))
    return tuple((replicas, 1) for replicas in straight)


def _all() -> Iterator[Case]:
    """Every schedule with every optimizer, shape and model, though not all at once; each with
    recomputation; what needs a flush on those that flush."""
    models, optimizers = ("chain", "residual", "noisy"), tuple(RATES)
    trained = [s for s in SCHEDULES.values() if s.trains]
    for turn, schedule in enumerate(s.name for s in trained):
        for number, shape in enumerate(_shapes(schedule)):
            for again in (0, 1):
                model = models[(turn + number + again) % len(models)]
                optimizer = optimizers[(turn + 2 * number + again) % len(optimizers)]
                yield Case(model, schedule, optimizer, *shape)
        shapes = _shapes(schedule)
        if schedule != "pipedream-naive":
            yield Case("noisy", schedule, "adam", *shapes[0], recompute=True)
            yield Case("residual", schedule, "momentum", *shapes[3], recompute=True)
        yield Case("chain", schedule, "adamw", *shapes[0], extra="decay")
        yield Case("residual", schedule, "momentum", *shapes[3], extra="decay")
        yield Case("chain", schedule, "sgd", *shapes[3], extra="rates")
        yield Case("branched", schedule, optimizers[turn % len(optimizers)], *shapes[turn % 4])
        if schedule in FLUSHING:
            yield Case("chain", schedule, "adam", *shapes[0], extra="clip")
            yield Case("residual", schedule, "sgd", *shapes[3], extra="clip")
            yield Case(
                "noisy", schedule, "momentum", *shapes[1 if shapes[0][1] > 1 else 0], lanes=2
            )
    yield Case("chain", "afp", "adam", (1,), lanes=3)
    yield Case("chain", "afp", "sgd", (1, 1), lanes=2, extra="clip")


CASES = tuple(_all())
