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
from backend.pipeline.columns import encode
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.verify import check
from backend.prediction.durations import PlanDurations
from backend.prediction.shapes import steady_shape
from backend.runs.emulation import Emulation
from backend.runs.events import Metrics, Progress, Spans
from backend.runs.job import Job
from backend.runs.spec import TrainSpec
from workers.definitions.reorder import in_order
from workers.runtime.emulated.definition import Emulated
from workers.runtime.emulated.device import Device
from workers.runtime.emulated.model import layered
from workers.runtime.emulated.pace import PacedSums, PacedTransport
from workers.runtime.emulated.wires import Terms, Wires
from workers.runtime.executor import execute
from workers.runtime.losses import Losses
from workers.runtime.mail import Mail
from workers.runtime.recorder import Recorder
from workers.runtime.reporter import Reporter
from workers.runtime.seated import Seated, seated
from workers.runtime.training import Training
from workers.runtime.transport import transport
from workers.runtime.world import World

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
    run = _Run(job, job.spec, job.emulation, world, reporter)
    reporter.started()
    for number in range(job.spec.epochs):
        run.epoch(number)
    return job.spec.epochs


class _Run:
    """What stays the same over the epochs, each as long as the segment of a prediction."""

    def __init__(
        self, job: Job, spec: TrainSpec, emulation: Emulation, world: World, reporter: Reporter
    ) -> None:
        self.spec, self.reporter, self.folder = spec, reporter, Path(job.folder)
        self.scale, plan = emulation.scale, spec.plan
        self.shape = steady_shape(plan)
        self.program = check(lower(schedule(plan.schedule), self.shape))
        self.durations = PlanDurations(emulation.profile, plan.partition, emulation.cluster)
        share = sent_share(self.durations, plan.lanes)
        devices = tuple(map(self.durations.device, range(self.shape.num_ranks)))
        terms = Terms(emulation.cluster, devices, self.scale, share)
        wires = Wires(self.folder / "wires", world.rank, terms)
        speed = emulation.cluster.at(devices[world.rank]).speed
        self.device = Device(self.scale / speed)
        model = layered(emulation.profile, self.device, share)
        definition = Emulated(Path(job.definition), model.model)
        model = in_order(model, plan.partition.order)
        paced = replace(world, pace=PacedSums(wires, max(1, round(BUCKET * share))))
        taken = seated(paced, self.shape, definition, model, spec)
        bundles = [model.specs[first] for first, _ in taken.layers]
        mail = Mail(PacedTransport(transport(world), wires), bundles)
        self.seated: Seated = replace(taken, mail=mail)
        if self.seated.is_reporter:
            reporter.log(
                f"Emulated: {self.scale:g} s here are a second of {emulation.cluster.device.name}; "
                f"{share:.3%} of each tensor's bytes are sent, at a pace that makes up for it."
            )

    def epoch(self, number: int) -> None:
        """One segment; its spans are told in seconds of the emulated devices."""
        samples = NoSamples(self.spec.plan.microbatch)
        silent = Losses(self.reporter, False, self.shape, number, self.spec.epochs)
        training = Training(self.seated, self.program, samples, silent)
        actions = self.program.ranks[self.seated.seat.rank]
        told, last = -inf, len(actions) - 1

        def perform(index: int, action: Action) -> None:
            nonlocal told
            training.perform(index, action)
            if isinstance(action, Step | Average):
                self.device.busy(self.durations.profiled_update(action.stage))
            if self.seated.is_reporter and (time.monotonic() - told > TELL or index == last):
                told, done = time.monotonic(), number * len(actions) + index + 1
                self.reporter(Progress("train", done, self.spec.epochs * len(actions)))

        recorder = Recorder(self.seated.world)
        execute(actions, perform, self.seated.mail, recorder)
        self._tell(number, recorder)

    def _tell(self, number: int, recorder: Recorder) -> None:
        seconds, rank = recorder.now() / self.scale, self.seated.world.rank
        spans = [
            replace(span, start=span.start / self.scale, end=span.end / self.scale)
            for span in recorder.spans
        ]
        path = self.folder / f"spans-{rank}-{number}.arrow"
        path.write_bytes(encode(spans))
        self.reporter(Spans(rank, number, str(path), len(spans)))
        if self.seated.is_reporter:
            rate = self.shape.microbatches * self.spec.plan.microbatch / seconds
            self.reporter(Metrics("throughput", (number,), (rate,), (time.time(),), number))


def sent_share(durations: PlanDurations, lanes: int) -> float:
    """How much of each tensor is really sent, so that all weights together take `HELD` and no
    message more than `SENT`."""
    stages = durations.partition.stages
    bundles = [durations.ordered.graph.cut_bytes[stage.stop - 1] for stage in stages]
    whole = sum(
        stage.replicas * num_bytes
        for stage, num_bytes in zip(stages, durations.parameter_bytes, strict=True)
    )
    return min(1.0, HELD / max(1, whole * lanes), SENT / max(1, *bundles))


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

    def share(self, number: int) -> float:
        return 1.0
