"""The training runs that the runtime's contract compares with the sequential reference."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import lcm
from pathlib import Path
from types import ModuleType
from typing import Any

from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import holder
from backend.pipeline.codecs.catalog import CODECS, codecs_of
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sites import Sites, read_sites
from backend.runs.request.combinations import check_combinations
from backend.runs.request.optimizer_spec import OptimizerSpec, ParameterGroup
from backend.runs.request.spec import DataSpec, TrainSpec
from tests.contract.runtime_matrix import covering
from tests.contract.runtime_rounding import ROUNDS

HERE = Path(__file__).parent
MICROBATCH, BATCH, EPOCHS, SEED, SAMPLES = 3, 4, 2, 7, 58
RATES = {"sgd": 0.2, "momentum": 0.1, "adam": 0.02, "adamw": 0.02}
FURTHER_RATES = {"adafactor": 0.05, "lion": 0.01}
"""Of optimizers that meet a few delicate cases alone."""
HEADS = "[4dho]*"
"""Names of what is last in the models."""
EXTRAS: dict[str, dict[str, Any]] = {
    "": {},
    "decay": {"weight_decay": 0.1},
    "clip": {"clip_norm": 0.05},
    "rates": {"warm_up": 0.5, "decay": "cosine"},
}
GROUPS = (ParameterGroup("*.bias", 2.0, 0.3), ParameterGroup(HEADS, 0.5))
FURTHER_EXTRAS: dict[str, dict[str, Any]] = {
    "groups": {"weight_decay": 0.1, "decayed": "matrices", "groups": GROUPS},
    "average": {"ema": 0.8},
    "clip apart": {"clip_norm": 0.02, "clip_by": "stage"},
    "one cycle": {"decay": "one-cycle"},
    "root": {"decay": "inverse-sqrt", "warm_up_updates": 3},
}
"""Those that meet a few delicate cases alone."""
STASHING = ("pipedream", "pipedream-vertical-sync", "pipedream-naive")
FLUSHING = tuple(name for name, rule in SCHEDULES.items() if rule.flushes and rule.trains)
CUTS = {
    "chain": {1: [], 2: [2], 3: [2, 3], 4: [1, 2, 4]},
    "residual": {1: [], 2: [3], 3: [3, 5], 4: [1, 3, 5]},
    "noisy": {1: [], 2: [4], 3: [4, 6], 4: [2, 4, 6], 6: [1, 2, 4, 6, 7], 8: [*range(1, 8)]},
    "branched": {1: [], 2: [5], 3: [5, 8], 4: [2, 5, 8]},
    "tied": {1: [], 2: [3], 3: [2, 4], 4: [2, 4, 6]},
    "lora": {1: [], 2: [17], 3: [17, 33], 4: [12, 33, 45]},
}
"""Per model and number of stages the first layers of all stages but the first."""
_ADAPTED = {"before": 0, "query": 1, "key": 6, "value": 11, "out": 17, "between": 19}
_ADAPTED |= {"wide": 20, "narrow": 26}


def _adapted(block: str) -> list[str]:
    """The layers of a block of the model lora that has adapters."""
    names = {place: f"{block}.{name}" for name, place in _ADAPTED.items()}
    return [names.get(place, "") for place in range(28)]


PREFIXES = {
    "chain": list("01234"),
    "noisy": list("012345678"),
    "residual": ["a", "", "b", "", "c", "scale", "", "", "d"],
    "tied": ["first", "", "inner", "", "", "", "out"],
    "lora": [*("words", "first"), *[""] * 15, *_adapted("second"), *_adapted("third"), "", "head"],
    "branched": ["stem", "", "right", "", "right_more", "left", "", "left_more", "", "", "head"],
}
"""The parameters' prefix of each layer, in the plan's order."""
ORDERS = {"branched": (0, 1, 4, 5, 7, 2, 3, 6, 8, 9, 10)}
"""The layers as the plan takes them, where that is not the model's order: one branch, then the
other, whose layers take turns in the model."""


TRACINGS = {model: "captured" if model == "tied" else "symbolic" for model in CUTS}
"""How ranks find the layers again; models of one stage are traced by running them."""


@dataclass(frozen=True)
class Case:
    model: str
    schedule: str
    optimizer: str
    replicas: tuple[int, ...]
    chunks: int = 1
    num_pipelines: int = 1
    recompute: bool = False
    extra: str = ""
    batch: int = BATCH
    last: str = "drop"
    state: str = "float32"
    sharded: bool = False
    run_ahead: int = 0
    codec: str = ""
    shares: tuple[tuple[int, ...], ...] = ()
    between: str = ""

    @property
    def name(self) -> str:
        shape = ".".join(map(str, self.replicas)) + f"x{self.chunks}" * (self.chunks > 1)
        more = [f"{self.num_pipelines}pipelines"] * (self.num_pipelines > 1) + [
            "again"
        ] * self.recompute
        more += [f"batch{self.batch}"] * (self.batch != BATCH) + [self.last] * self.is_kept
        more += [self.state] * self.is_rounded + ["sharded"] * self.sharded
        more += [f"ahead{self.run_ahead}"] * (self.run_ahead > 0) + [self.codec] * bool(self.codec)
        more += ["shares" + "-".join(".".join(map(str, own)) for own in self.shares)] * bool(
            self.shares
        )
        more += [self.between.replace(":", "-").replace(",", "-")] * bool(self.between)
        parts = [self.model, self.schedule, self.optimizer, shape, *more, self.extra]
        return "-".join(part for part in parts if part)

    @property
    def sites(self) -> Sites | None:
        return read_sites(self.between)

    @property
    def rate(self) -> float:
        return (RATES | FURTHER_RATES)[self.optimizer]

    @property
    def asked(self) -> dict[str, Any]:
        """Of the optimizer beside its name and rate."""
        return (EXTRAS | FURTHER_EXTRAS)[self.extra]

    @property
    def num_ranks(self) -> int:
        return sum(self.replicas) * self.num_pipelines

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
    def is_rounded(self) -> bool:
        """Whether some state is kept in bfloat16; others are in double precision."""
        return self.state != "float32"

    @property
    def is_kept(self) -> bool:
        return self.last == "keep"

    @property
    def updated(self) -> int:
        """Microbatches of an update of one pipeline; with stashing each replica's own."""
        return 1 if self.schedule in STASHING else self.batch

    @property
    def unit(self) -> int:
        """Microbatches of a round, which the replicas and pipelines share evenly."""
        every = self.shares or ((),) * len(self.replicas)
        rounds = [sum(own) or count for own, count in zip(every, self.replicas, strict=True)]
        return self.num_pipelines * lcm(*rounds, self.updated)

    @property
    def sizes(self) -> list[int]:
        """Samples of every microbatch of an epoch."""
        rounds, left = divmod(SAMPLES, MICROBATCH * self.unit)
        sizes = [MICROBATCH] * (rounds * self.unit)
        if not self.is_kept or left < self.unit:
            return sizes
        more = left % self.unit
        return sizes + [left // self.unit + (n < more) for n in range(self.unit)]

    @property
    def microbatches(self) -> int:
        return len(self.sizes)

    def stage_of(self, parameter: str) -> int:
        prefixes = enumerate(PREFIXES[self.model])
        layer = next(
            n for n, prefix in prefixes if prefix and f"{parameter}.".startswith(f"{prefix}.")
        )
        return sum(layer >= bound for bound in self.bounds[1:])

    def spec(self) -> TrainSpec:
        first = [sum(self.replicas[:pipeline_rank]) for pipeline_rank in range(len(self.replicas))]
        devices = [tuple(range(a, a + n)) for a, n in zip(first, self.replicas, strict=True)]
        bounds = zip(self.bounds, self.bounds[1:], strict=False)
        placement = SCHEDULES[self.schedule].placement_of(self.chunks)
        size = len(self.replicas)
        stages = tuple(
            Stage(
                *cut,
                devices[int(holder(placement, number, size))],
                self.shares[number] if self.shares else (),
            )
            for number, cut in enumerate(bounds)
        )
        plan = Plan(
            "test",
            Partition(stages, ORDERS.get(self.model, ()), self.chunks, placement),
            self.schedule,
            MICROBATCH,
            self.batch,
            recompute=self.recompute,
            num_pipelines=self.num_pipelines,
            shard_state=self.sharded,
            run_ahead=self.run_ahead,
            codecs=codecs_of(self.codec, self.num_stages - 1),
            sites=self.sites,
        )
        optimizer = OptimizerSpec(self.optimizer, self.rate, **self.asked)
        data = DataSpec(last=self.last)
        tracing = TRACINGS[self.model] if self.num_stages > 1 else ""
        spec = TrainSpec(
            1, plan, data=data, optimizer=optimizer, epochs=EPOCHS, seed=SEED, tracing=tracing
        )
        if not self.is_rounded:
            return spec
        return replace(
            spec,
            parameters={"precise": False},
            state_precision=self.state,
            precision="bfloat16" if ROUNDS[self.state].weights else "float32",
        )

    def definition(self) -> ModuleType:
        return definition_of(self.model)


def definition_of(model: str) -> ModuleType:
    file = HERE / "models" / f"{model}.py"
    spec = importlib.util.spec_from_file_location(model, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHAPES = ((1,), (1, 1), (2,), (1, 1, 1), (2, 1), (1, 2), (2, 2))
MOST_RANKS = 4
FACTORS = {
    "schedule": tuple(
        name for name, s in SCHEDULES.items() if s.trains and s.executable and not s.local
    ),
    "replicas": SHAPES,
    "chunks": (1, 2, 3),
    "optimizer": tuple(RATES),
    "extra": tuple(EXTRAS),
    "model": tuple(CUTS),
    "recompute": (False, True),
    "num_pipelines": (1, 2),
    "batch": (4, 2),
    "last": ("drop", "keep"),
    "sharded": (False, True),
}


LIKE_ZB_V = ("v-half", "v-min", "dualpipe-v", "interleaved-zb")
ROUNDED = {
    "schedule": tuple(name for name in FACTORS["schedule"] if name not in LIKE_ZB_V),
    "state": tuple(ROUNDS),
    "optimizer": FACTORS["optimizer"],
    "replicas": ((1,), (1, 1), (1, 2), (2, 1)),
    "chunks": (1, 2),
    "model": ("chain", "residual", "noisy", "tied"),
    "extra": tuple(EXTRAS),
    "num_pipelines": (1, 2),
    "last": ("drop", "keep"),
}
"""What meets with state in bfloat16. The branched model is not there: the gradients of a tensor
that is read three times are added in the order of the plan's layers, which bfloat16 shows. Of the
schedules whose halves of backwards lie in chunks one is there."""


def fits(row: dict[str, Any]) -> bool:
    """Whether a row, which may lack some factors still, can become a run that is compared."""
    case = Case(**USUAL | row)
    known = row.keys()
    if case.num_ranks > MOST_RANKS or case.num_stages not in CUTS[case.model]:
        return False
    if case.schedule == "pipedream-naive" and case.model == "tied":
        return False  # the last stage has a copy of the weight, which nobody changes
    if case.model == "noisy" and min(case.sizes) < 2:
        return False  # a batch norm of one sample has no variance
    if not {"schedule", "chunks", "replicas"} <= known:
        return True
    try:
        check_combinations(case.spec())
    except InvalidInput:
        return False
    return True


USUAL = {"model": "chain", "schedule": "gpipe", "optimizer": "sgd", "replicas": (1,)}


def _all() -> Iterator[Case]:
    """Each two of all factors together, and a few that are known to be delicate."""
    for row in covering(FACTORS, fits):
        yield Case(**row)
    for number, row in enumerate(covering(ROUNDED, fits)):
        yield Case(**row, sharded=number % 2 == 0 and max(row["replicas"]) > 1)
    for schedule in FLUSHING:
        shape = ((1, 1), 2) if SCHEDULES[schedule].chunked else ((2, 1), 1)
        yield Case("noisy", schedule, "adamw", *shape, recompute=True, extra="decay")
        yield Case("chain", schedule, "adam", *shape, extra="clip", last="keep")
    yield Case("residual", "pipedream", "momentum", (2, 1), recompute=True, extra="rates")
    yield Case("tied", "2bw", "adam", (1, 1, 1), extra="decay")
    for schedule in ("1f1b-flush", "pipedream", "2bw"):
        for stages in (1, 2, 4):
            yield Case("lora", schedule, "adamw", (1,) * stages, recompute=stages == 4)
    for schedule, batch in (("1f1b-flush", 4), ("pipedream", 4), ("2bw", 6)):
        yield Case("residual", schedule, "adamw", (3, 1), batch=batch, sharded=True)
    yield Case("chain", "afp", "adam", (1,), num_pipelines=3)
    for state in ("float32", "bfloat16-masters"):
        yield Case("chain", "afp", "adam", (2,), num_pipelines=2, state=state, sharded=True)
    yield Case("chain", "afp", "sgd", (1, 1), num_pipelines=2, extra="clip")
    yield from _further()


def _further() -> Iterator[Case]:
    """Each further optimizer and extra in several stages, where gradients are old and where not,
    under sharded, rounded and averaged state."""
    yield Case("residual", "1f1b-flush", "adamw", (2, 1), extra="groups", sharded=True)
    yield Case("tied", "pipedream", "lion", (1, 1, 1), extra="groups")
    yield Case("residual", "gpipe", "adafactor", (1, 1, 1), extra="groups")
    yield Case("chain", "pipedream", "adafactor", (2, 1), extra="clip apart")
    yield Case("chain", "interleaved", "momentum", (1, 1), 2, extra="clip apart")
    yield Case("tied", "2bw", "lion", (1, 1), extra="average")
    yield Case("chain", "afp", "adam", (1, 1), num_pipelines=2, extra="average")
    yield Case("chain", "afp", "adam", (2,), num_pipelines=2, extra="average", sharded=True)
    masters = "bfloat16-masters"
    yield Case("chain", "1f1b-flush", "adamw", (2, 1), extra="average", state=masters, sharded=True)
    yield Case("chain", "1f1b-flush", "lion", (1, 1), extra="groups", state="bfloat16-state32")
    yield Case("residual", "pipedream", "adam", (1, 2), extra="one cycle")
    yield Case("noisy", "zb-h1", "sgd", (1, 1), extra="root")
    for schedule in (name for name, rule in SCHEDULES.items() if rule.is_v):
        yield Case("residual", schedule, "adam", (1, 1), 2)
        yield Case("noisy", schedule, "sgd", (1, 1, 1, 1), 2, batch=8)
        yield Case("chain", schedule, "adamw", (2, 2), 2, batch=8, sharded=True)
        yield Case("chain", schedule, "momentum", (1, 1), 2, batch=6, codec="int8")
        yield Case("chain", schedule, "adam", (1, 1), 2, batch=6, codec="top10")
    unequal = {"batch": 6, "shares": ((2, 1), ())}
    yield Case("residual", "1f1b-flush", "adam", (2, 1), **unequal, extra="clip", last="keep")
    yield Case("noisy", "zb-h1", "adamw", (2, 1), **unequal, sharded=True)
    yield Case("chain", "gpipe", "momentum", (1, 3), recompute=True, shares=((), (1, 1, 2)))
    yield Case("chain", "2bw", "adam", (2, 1), **unequal)
    yield Case("chain", "pipedream", "adam", (2, 1), run_ahead=1)
    yield Case("chain", "pipedream-vertical-sync", "momentum", (1, 1, 1), run_ahead=1)
    yield Case("residual", "2bw", "adam", (1, 1), run_ahead=2)
    diloco = {"num_pipelines": 2, "between": "diloco:every=2"}
    yield Case("chain", "1f1b-flush", "adamw", (1, 1), **diloco)
    yield Case("residual", "pipedream", "momentum", (1, 1), **diloco)
    yield Case("tied", "2bw", "adam", (1, 1), **diloco, extra="average")
    yield Case("noisy", "zb-h1", "sgd", (2,), **diloco, sharded=True)
    yield Case("chain", "gpipe", "sgd", (1,), num_pipelines=3, between="elastic")
    gaia = {"num_pipelines": 2, "between": "gaia:threshold=0.05"}
    yield Case("chain", "1f1b-flush", "momentum", (1, 1), **gaia)
    yield Case("residual", "pipedream", "adam", (1, 1), **gaia)
    for codec in CODECS:
        yield Case("noisy", "1f1b-flush", "momentum", (1, 1), codec=codec, last="keep")
        middle = 1 if CODECS[codec].keeps_samples else 2
        yield Case("chain", "pipedream", "adam", (1, middle, 1), codec=codec)
        yield Case("chain", "zb-h1", "adamw", (1, 1), codec=codec)
    yield Case("residual", "1f1b-flush", "adam", (1, 1, 1), codec="aq2", last="keep")
    yield Case("chain", "gpipe", "sgd", (1, 1), recompute=True, codec="aq4")
    yield Case("chain", "interleaved", "momentum", (1, 1), 2, codec="aq4")
    yield Case("chain", "zb-v", "adam", (1, 1), 2, batch=6, codec="aq4")
    yield Case("residual", "2bw", "adam", (1, 1, 1), batch=6, codec="aq4", run_ahead=1)
    for codec in ("int8", "top10"):
        yield Case("residual", "pipedream", "momentum", (1, 1, 1), codec=codec)
        yield Case("residual", "1f1b-flush", "adam", (1, 2, 1), codec=codec, last="keep")
        yield Case("chain", "2bw", "adam", (1, 1, 1), batch=6, codec=codec, run_ahead=1)
        yield from _coded_otherwise(codec)


def _coded_otherwise(codec: str) -> Iterator[Case]:
    yield Case("chain", "gpipe", "sgd", (1, 1), recompute=True, codec=codec)
    yield Case("chain", "afp", "adam", (1, 1), num_pipelines=2, codec=codec)
    yield Case("chain", "interleaved", "momentum", (1, 1), 2, codec=codec)


CASES = tuple(dict.fromkeys(_all()))
