"""A run on emulated devices: the program, the processes, the messages and the updates are those
of a training; computing is waiting, tensors are smaller, and nothing is learned."""

import time
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import torch
from torch import Tensor

from backend.errors import InvalidInput
from backend.pipeline.actions import Action, Average, Step
from backend.prediction.durations import PlanDurations
from backend.prediction.shapes import steady_shape, with_one_way
from backend.profiles.what_if import kept_in
from backend.runs.events import Metrics, Progress
from backend.runs.job import Emulation, Job
from backend.runs.request.spec import TrainSpec
from workers.definitions.reorder import in_order
from workers.runtime.compute.model import Layers
from workers.runtime.emulated.definition import EmulatedDefinition
from workers.runtime.emulated.delays import DelayedCollectives, DelayedTransport
from workers.runtime.emulated.device import EmulatedDevice
from workers.runtime.emulated.links import EmulatedLinks, LinkTerms
from workers.runtime.emulated.model import layered
from workers.runtime.execution.executor import execute
from workers.runtime.execution.losses import Losses
from workers.runtime.execution.program import training_program
from workers.runtime.execution.training import Training
from workers.runtime.messages.groups import is_reporter
from workers.runtime.messages.transport import transport
from workers.runtime.messages.world import World
from workers.runtime.rank import Rank, check_ranks, make_rank
from workers.runtime.reports.core_meter import CoreMeter
from workers.runtime.reports.recorder import Recorder
from workers.runtime.reports.reporter import Reporter

HELD = 16 * 2**20
"""Bytes of weights that all ranks together really hold and sum: little beside the waiting."""
SENT = 2**18
"""Bytes of the largest message that is really sent, likewise."""
BUCKET = 25 * 2**20
"""Bytes of a gradient bucket: as torch's DistributedDataParallel has it, which the papers' figures
are compared with; the runtime's own are smaller, and too many for the cores of one machine."""
TELL = 0.5
"""Seconds between words on how far the run is."""


def emulate(job: Job, world: World, reporter: Reporter) -> int:
    """Wait through the epochs that the job asks for; how many there were.

    Every rank calls it. Raises `InvalidInput` where the job emulates nothing or its plan is
    none for its profile and cluster.
    """
    if not isinstance(job.spec, TrainSpec) or job.emulation is None:
        raise InvalidInput(f"job {job.name!r} emulates no devices")
    run = _EmulatedRun(job, job.spec, job.emulation, world, reporter)
    reporter.started()
    for number in range(job.spec.epochs):
        run.epoch(number)
    return job.spec.epochs


class _EmulatedRun:
    """What stays the same over the epochs, each as long as the segment of a prediction."""

    def __init__(
        self, job: Job, spec: TrainSpec, emulation: Emulation, world: World, reporter: Reporter
    ) -> None:
        self.spec, self.reporter, self.folder = spec, reporter, Path(job.folder)
        self.scale, plan = emulation.scale, spec.plan
        self.shape = with_one_way(steady_shape(plan), emulation.profile, plan.partition)
        check_ranks(world, self.shape)
        self.program = training_program(plan.schedule, self.shape, world.rank)
        kept = kept_in(emulation.profile, spec.state_precision)
        self.durations = PlanDurations.of(kept, emulation.cluster, plan)
        share = sent_share(self.durations, plan.num_pipelines)
        devices = tuple(map(self.durations.device, range(self.shape.num_ranks)))
        terms = LinkTerms(emulation.cluster, devices, self.scale, share)
        links = EmulatedLinks(self.folder / "links", world.rank, terms)
        self.device = EmulatedDevice(self.scale / emulation.cluster.at(devices[world.rank]).speed)
        model = layered(emulation.profile, self.device, share)
        definition = EmulatedDefinition(Path(job.definition), model.model)
        layers = Layers(in_order(model, plan.partition.order))
        timing = DelayedCollectives(links, max(1, round(BUCKET * share)))
        timed = replace(world, timing=timing)
        channel = DelayedTransport(transport(world), links)
        self.rank: Rank = make_rank(timed, self.shape, definition, layers, spec, channel)
        self.is_reporter = is_reporter(self.rank.coordinates)
        if self.is_reporter:
            reporter.log(
                f"Emulated: {self.scale:g} s here are a second of {emulation.cluster.device.name}; "
                f"{100 * share:.3g} % of each tensor's bytes is sent, "
                "at a pace that makes up for it."
            )

    def epoch(self, number: int) -> None:
        """One segment; its spans are told in seconds of the emulated devices."""
        samples = NoSamples(self.spec.plan.microbatch)
        silent = Losses(self.reporter, False, self.shape, number, self.spec.epochs)
        training = Training(self.rank, self.program, samples, silent, self.spec.seed)
        actions = self.program.actions
        told, last = -inf, len(actions) - 1

        def perform(index: int, action: Action) -> None:
            nonlocal told
            self.device.begin()
            training.perform(index, action)
            if isinstance(action, Step | Average):
                self.device.busy(self._update_seconds(action))
            if self.is_reporter and (time.monotonic() - told > TELL or index == last):
                told, done = time.monotonic(), number * len(actions) + index + 1
                self.reporter(Progress("train", done, self.spec.epochs * len(actions)))

        world = self.rank.world
        recorder, meter = Recorder(world, self.scale), CoreMeter()
        execute(actions, perform, self.rank.messages, recorder)
        seconds = recorder.now()
        self.reporter(meter.told(world.rank, number, world.host))
        self.reporter(recorder.write(self.folder, number))
        if self.is_reporter:
            rate = self.shape.num_microbatches * self.spec.plan.microbatch / seconds
            self.reporter(Metrics("throughput", (number,), (rate,), (time.time(),), number))

    def _update_seconds(self, action: Step | Average) -> float:
        """On the profiled device; what is gathered comes over the emulated links."""
        whole, stage = self.durations.parts[action.stage].update, action.stage
        shares = isinstance(action, Step) and self.spec.plan.shard_state
        return whole / (self.durations.partition.stages[stage].replicas if shares else 1)


def sent_share(durations: PlanDurations, num_pipelines: int) -> float:
    """How much of each tensor is really sent, so that all weights together take `HELD` and no
    message more than `SENT`."""
    stages = durations.partition.stages
    bundles = [durations.ordered.graph.cut_bytes[stage.stop - 1] for stage in stages]
    whole = sum(
        stage.replicas * num_bytes
        for stage, num_bytes in zip(stages, durations.parameter_bytes, strict=True)
    )
    return min(1.0, HELD / max(1, whole * num_pipelines), SENT / max(1, *bundles))


@dataclass(frozen=True, slots=True)
class NoSamples:
    """A number per sample, always the same: nobody looks at it."""

    microbatch: int
    first: int = 0

    def bundle(self, number: int, device: torch.device) -> tuple[Tensor, ...]:
        return (torch.zeros(self.microbatch, 1),)

    def answers(self, number: int, device: torch.device) -> Tensor:
        return torch.zeros(self.microbatch)

    def form(self, number: int) -> tuple[int, int | None]:
        return self.microbatch, None

    def samples(self, number: int) -> tuple[int, ...]:
        return ()

    def share(self, number: int) -> float:
        return 1.0
