"""Ways to train one model on two processes: plain, DDP, torch's pipelining, and Stageflow's.

A contestant is made once and then trains so many microbatches per call; every rank calls it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining
from torch.nn.parallel import DistributedDataParallel

from backend.pipeline.actions import Compute
from backend.pipeline.codecs.catalog import codecs_of
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import TrainSpec
from workers.data.split import TensorSplit
from workers.definitions.cut import cut
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.runtime.compute.model import Layers
from workers.runtime.execution.executor import execute
from workers.runtime.execution.losses import Losses
from workers.runtime.execution.program import training_program
from workers.runtime.execution.training import Training
from workers.runtime.messages.world import World
from workers.runtime.rank import make_rank
from workers.runtime.reports.recorder import Recorder
from workers.runtime.reports.reporter import Reporter
from workers.runtime.samples.epoch import Epoch

RATE, MOMENTUM = 0.001, 0.9
TORCH = {
    "torch gpipe": pipelining.ScheduleGPipe,
    "torch 1f1b": pipelining.Schedule1F1B,
    "torch interleaved": pipelining.ScheduleInterleaved1F1B,
}


@dataclass(frozen=True)
class Race:
    """What all contestants share: `bounds` are the first layers of 2 (or 4) stages and the
    number of layers; `batch` microbatches make one update of a flush schedule."""

    world: World
    file: Path
    microbatch: int
    batch: int
    bounds: tuple[int, ...]
    chunked: tuple[int, ...]

    def definition(self):
        return load(self.file)

    def data(self, samples: int):
        torch.manual_seed(0)
        return self.definition().example(samples)

    def layered(self):
        definition = self.definition()
        return prepare(definition, self.data(self.microbatch), 0, self.world.device)


@dataclass
class Lap:
    """One call: seconds for `samples`, and of steady state where it is known."""

    seconds: float
    samples: int
    steady: float | None = None
    bound: float | None = None


Contestant = Callable[[int], Lap]


def _timed(race: Race, samples: int, work: Callable[[], object]) -> Lap:
    race.world.barrier()
    start = perf_counter()
    work()
    race.world.barrier()
    return Lap(perf_counter() - start, samples)


def _sgd(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, RATE, MOMENTUM, fused=True)


def whole_model(race: Race) -> nn.Module:
    return race.definition().model(0).train()


def stepping(race: Race, model: nn.Module) -> Callable[[], None]:
    """Training of `model` on one microbatch."""
    definition, optimizer = race.definition(), _sgd(model.parameters())
    inputs, targets = race.data(race.microbatch)

    def step() -> None:
        definition.loss(model(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def single(race: Race) -> Contestant:
    """Rank 0 alone trains, one update per microbatch."""
    step = stepping(race, whole_model(race))

    def lap(microbatches: int) -> Lap:
        count = microbatches if race.world.rank == 0 else 0
        return _timed(race, microbatches * race.microbatch, lambda: [step() for _ in range(count)])

    return lap


def ddp(race: Race) -> Contestant:
    """Data parallelism: each rank one microbatch per update."""
    model = DistributedDataParallel(whole_model(race), gradient_as_bucket_view=True)
    step = stepping(race, model)

    def lap(microbatches: int) -> Lap:
        steps = max(1, microbatches // race.world.size)
        samples = steps * race.world.size * race.microbatch
        return _timed(race, samples, lambda: [step() for _ in range(steps)])

    return lap


def torch_pipeline(race: Race, name: str) -> Contestant:
    """torch.distributed.pipelining on the same stages, one update per batch."""
    world, definition, layered = race.world, race.definition(), race.layered()
    bounds = race.chunked if name == "torch interleaved" else race.bounds
    numbers = range(world.rank, len(bounds) - 1, world.size)
    modules = [cut(layered, bounds[n], bounds[n + 1]).train() for n in numbers]
    stages = [
        pipelining.PipelineStage(_Bare(module), n, len(bounds) - 1, world.device)
        for n, module in zip(numbers, modules, strict=True)
    ]
    given = stages if name == "torch interleaved" else stages[0]
    runner = TORCH[name](given, race.batch, loss_fn=definition.loss)
    optimizer = _sgd([p for module in modules for p in module.parameters()])
    inputs, targets = race.data(race.microbatch * race.batch)

    def step() -> None:
        if world.rank == 0:
            runner.step(inputs)
        else:
            runner.step(target=targets, losses=[])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def lap(microbatches: int) -> Lap:
        steps = max(1, microbatches // race.batch)
        samples = steps * race.batch * race.microbatch
        return _timed(race, samples, lambda: [step() for _ in range(steps)])

    return lap


class _Bare(nn.Module):
    """A stage that hands on contiguous tensors, a single one bare, and takes contiguous
    gradients, as torch's pipelining wants it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *inputs):
        result = self.inner(*map(_Contiguous.apply, inputs))
        whole = [part.contiguous() for part in (result if isinstance(result, tuple) else [result])]
        return whole[0] if len(whole) == 1 else tuple(whole)


class _Contiguous(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.view_as(value)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.contiguous()


class Ours:
    """A plan, as a run executes it."""

    def __init__(self, race: Race, plan: Plan) -> None:
        self.race, world, definition = race, race.world, race.definition()
        optimizer = OptimizerSpec("momentum", RATE, MOMENTUM)
        spec = TrainSpec(1, plan, optimizer=optimizer)
        self.plan = spec.plan
        self.batch = spec.plan.batch if schedule(spec.plan.schedule).batched else 1
        shape = self._shape(race.batch * 2)
        self.rank = make_rank(world, shape, definition, Layers(race.layered()), spec)
        self.data = race.data(race.microbatch * race.batch)

    def _shape(self, microbatches: int) -> Shape:
        partition = self.plan.partition
        shape = Shape(partition.replicas, microbatches, self.batch, chunks=partition.chunks)
        return replace(shape, run_ahead=self.plan.run_ahead, shares=partition.shares)

    def prepare(self, microbatches: int) -> None:
        """Make the program and everything else that an epoch begins with."""
        race = self.race
        shape, rank = self._shape(microbatches), race.world.rank
        self.program = training_program(self.plan.schedule, shape, rank)
        order = torch.arange(microbatches * race.microbatch) % (race.microbatch * race.batch)
        groups = [(group, None) for group in order.split(race.microbatch)]
        epoch = Epoch(TensorSplit(*self.data), groups, race.microbatch)
        losses = Losses(Reporter(rank), False, shape, 0, 1)
        self.training = Training(self.rank, self.program, epoch, losses, 0)
        self.recorder = Recorder(race.world)

    @property
    def num_actions(self) -> int:
        """Of this rank's program."""
        return len(self.program.actions)

    def execute(self) -> None:
        perform, messages = self.training.perform, self.rank.messages
        execute(self.program.actions, perform, messages, self.recorder)

    def __call__(self, microbatches: int) -> Lap:
        self.prepare(microbatches)
        found = _timed(self.race, microbatches * self.race.microbatch, self.execute)
        if microbatches >= 2 * self.race.batch:
            found.steady, found.bound = _steady(self.race, self.recorder.spans, microbatches)
        return found


def plan_of(race: Race, name: str) -> Plan:
    """A schedule on the race's cuts; "data parallel" is a plan too. "2bw ahead 1 with int8 at 7" is
    2bw that runs ahead by 1, with a codec, cut in front of layer 7."""
    if name == "data parallel":
        partition = Partition((Stage(0, race.bounds[-1], tuple(range(race.world.size))),))
        return Plan("bench", partition, "1f1b-flush", race.microbatch, race.world.size)
    rest, _, at = name.partition(" at ")
    rest, _, coded = rest.partition(" with ")
    schedule, _, ahead = rest.partition(" ahead ")
    bounds = race.chunked if schedule == "interleaved" else race.bounds
    bounds = bounds_at(race, at) if at else bounds
    chunks = (len(bounds) - 1) // race.world.size
    stages = tuple(
        Stage(bounds[n], bounds[n + 1], (n % race.world.size,)) for n in range(len(bounds) - 1)
    )
    plan = Plan("bench", Partition(stages, chunks=chunks), schedule, race.microbatch, race.batch)
    return replace(plan, run_ahead=int(ahead or 0), codecs=codecs_of(coded, len(stages) - 1))


def bounds_at(race: Race, at: str) -> tuple[int, ...]:
    """Those of two stages that part in front of layer `at`; the race's where none is said."""
    return (0, int(at), race.bounds[-1]) if at else race.bounds


def _steady(race: Race, spans: Sequence, microbatches: int) -> tuple[float, float]:
    """Seconds per microbatch over the middle half on the last rank, and the slowest rank's
    compute per microbatch there."""
    computed = [span for span in spans if isinstance(span.action, Compute)]
    middle = computed[len(computed) // 4 : -(len(computed) // 4)]
    share = microbatches * len(middle) / len(computed)
    mine = sum(span.seconds for span in middle) / share
    elapsed = (middle[-1].end - middle[0].start) / share
    both = torch.tensor(
        [[elapsed, mine] if r == race.world.rank else [0.0, 0.0] for r in range(race.world.size)],
        dtype=torch.float64,
    )
    dist.all_reduce(both)
    return float(both[:, 0].max()), float(both[:, 1].max())


def contestant(race: Race, name: str) -> Contestant:
    """By name: "single", "ddp", "torch ...", "data parallel", or a schedule. "torch 1f1b at 7" is
    torch's, cut in front of layer 7."""
    if name == "single":
        return single(race)
    if name == "ddp":
        return ddp(race)
    bare, _, at = name.partition(" at ")
    if bare in TORCH:
        return torch_pipeline(replace(race, bounds=bounds_at(race, at)), bare)
    return Ours(race, plan_of(race, name))


def cuts(race: Race, bandwidth: float | None, parts: int) -> tuple[int, ...]:
    """The best bounds of a straight pipeline of `parts` stages by times measured here: the
    smallest max(stage seconds, 2 x boundary bytes / bandwidth) (PipeDream, section 3.1)."""
    from workers.profiler.measure import measure

    layered, definition = race.layered(), race.definition()
    for measured in measure(layered, race.data(race.microbatch), definition.loss, 5):
        times = measured.layers
    seconds = [median(t.forward) + median(t.backward) + median(t.update) for t in times]
    count = len(seconds)
    carried = [sum(spec.num_bytes for spec in layered.specs[layer]) for layer in range(count)]
    best: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {(0, 0): (0.0, (0,))}
    for part in range(1, parts + 1):
        for stop in range(part, count + 1):
            options = []
            for first in range(part - 1, stop):
                if (part - 1, first) in best:
                    worst, bounds = best[part - 1, first]
                    wire = 2 * carried[first] / bandwidth if first and bandwidth else 0.0
                    load = max(worst, sum(seconds[first:stop]), wire)
                    options.append((load, (*bounds, stop)))
            if options:
                best[part, stop] = min(options)
    return best[parts, count][1]
