"""A training run on one rank: load, then epochs of training and evaluation, then save."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from backend.errors import InvalidInput
from backend.pipeline.actions import Action
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.forward_only import FORWARD_ONLY
from backend.pipeline.shape import Shape
from backend.pipeline.verify import check
from backend.runs.events import Clock, Progress
from backend.runs.job import Job
from backend.runs.spec import TrainSpec
from workers.data import catalog
from workers.data.cutting import Cutting
from workers.data.part import DataSet
from workers.definitions.loader import load
from workers.runtime.checkpoint import Checkpoints
from workers.runtime.data import Epoch
from workers.runtime.evaluation import Evaluation, Score
from workers.runtime.executor import execute
from workers.runtime.loading import Loading, loading
from workers.runtime.losses import Losses
from workers.runtime.model import layers_of
from workers.runtime.recorder import Recorder
from workers.runtime.reporter import Reporter
from workers.runtime.saving import save
from workers.runtime.seated import Seated, seated
from workers.runtime.training import Training
from workers.runtime.world import World


def train(job: Job, world: World, reporter: Reporter) -> int:
    """Train as the job says and save the weights into its folder; the epochs done.

    Every rank calls it. Raises what `layers_of`, `catalog.load` and `seated` raise, `ModelRaised`
    and `LossNotFinite`.
    """
    if not isinstance(job.spec, TrainSpec):
        raise InvalidInput(f"job {job.name!r} asks for a {job.spec.kind} run, not for training")
    run = _Run(job, job.spec, world, reporter)
    reporter.started()
    epochs = run.epochs()
    run.checkpoints.close()
    save(run.seated, Path(job.folder), reporter)
    return epochs


class _Run:
    """What stays the same over the epochs of one run."""

    def __init__(self, job: Job, spec: TrainSpec, world: World, reporter: Reporter) -> None:
        if world.rank == 0:
            reporter(Progress("load", 0, 1))
        self.spec, self.reporter, self.folder = spec, reporter, Path(job.folder)
        definition = load(Path(job.definition), spec.parameters)
        self.data = catalog.load(spec.data, definition, job.data)
        self.cutting = cutting_of(spec)
        self.shape = segment_shape(spec, self.data, self.cutting)
        self.program = check(lower(schedule(spec.plan.schedule), self.shape))
        layers = layers_of(job, spec, definition, self.data, self.cutting, world.device)
        self.seated: Seated = seated(
            world, self.shape, definition, layers.base, spec, layers.others
        )
        self.checkpoints = Checkpoints(self.seated, spec, self.shape, self.folder, reporter)
        self.done, self.first = job.epoch, 0
        if job.checkpoint:
            self.first = self.checkpoints.resume(Path(job.checkpoint), job.epoch, job.samples)
        if self.seated.is_reporter:
            self._tell(layers.base.notes)

    def epochs(self) -> int:
        """Train epoch by epoch until the target or the last; how many were done."""
        for number in range(self.done, self.spec.epochs):
            losses = Losses(
                self.reporter, self.seated.is_reporter, self.shape, number, self.spec.epochs
            )
            self.checkpoints.begin(number, losses.tell)
            shape = self._left()
            seconds, samples = self._train(number, shape, losses) if shape else (0.0, 0)
            score = self._evaluate()
            losses.end(seconds, samples, score)
            self.first = 0
            if self.spec.is_met(score.accuracy, score.loss):
                return number + 1
            if number + 1 < self.spec.epochs:
                self.checkpoints.epoch_over()
        return self.spec.epochs

    def _left(self) -> Shape | None:
        """What is left of an epoch; None where a checkpoint was taken at its end."""
        left = self.shape.microbatches - self.first
        return replace(self.shape, microbatches=left) if left else None

    def _train(self, number: int, shape: Shape, losses: Losses) -> tuple[float, int]:
        """One segment; its seconds and samples."""
        epoch = Epoch.shuffled(self.data.train, self.cutting, self.spec.seed, number, self.first)
        program = self.program
        if self.first:
            program = check(lower(schedule(self.spec.plan.schedule), shape))
        recorder = Recorder(self.seated.world)
        self.reporter.watch(recorder)
        self.checkpoints.watch(recorder.clock)
        self._tell_clock(number, recorder)
        actions = program.ranks[self.seated.seat.rank]
        with self._loading(epoch, actions, recorder) as source:
            training = Training(self.seated, program, source, losses, self.checkpoints)
            execute(actions, training.perform, self.seated.mail, recorder)
        seconds = recorder.now()
        self.reporter(recorder.write(self.folder, number))
        if source.spans:
            self.reporter(recorder.write_beside("loading", self.folder, number, source.spans))
        if copies := recorder.within(self.checkpoints.taken):
            self.reporter(recorder.write_beside("saving", self.folder, number, copies))
        return seconds, sum(epoch.form(k)[0] for k in range(shape.microbatches))

    def _tell_clock(self, number: int, recorder: Recorder) -> None:
        """Where there are several hosts: how far this one's clock is from that of rank 0."""
        rank, offset = self.seated.world.rank, recorder.offset
        if self.seated.world.hosts > 1 and self.seated.world.host > 0:
            self.reporter(Clock(rank, number, offset.seconds, offset.error))
            self.reporter.log(
                f"The clock of rank {rank} (host {self.seated.world.host}) is "
                f"{offset.seconds:+.6f} s from rank 0's, known to {offset.error * 1e6:.0f} us; "
                "the timeline is drawn on rank 0's."
            )

    def _loading(
        self, epoch: Epoch, actions: Sequence[Action], recorder: Recorder
    ) -> AbstractContextManager[Loading]:
        rank, last = self.seated.seat.rank, self.shape.num_stages - 1
        return loading(epoch, actions, last, rank, recorder.clock)

    def _evaluate(self) -> Score:
        """What the held-out samples say; nothing if there are none."""
        if self.data.held_out is None:
            return Score()
        cutting = replace(self.cutting, unit=math.lcm(*self.shape.replicas))
        epoch = Epoch.in_order(self.data.held_out, cutting)
        shape = Shape(self.shape.replicas, len(epoch.groups), chunks=self.shape.chunks)
        programs = lower(FORWARD_ONLY, shape).ranks  # with several lanes the first evaluates
        rank = self.seated.seat.rank
        actions = programs[rank] if rank < len(programs) else ()
        recorder = Recorder(self.seated.world)
        self.reporter.watch(recorder)
        with self._loading(epoch, actions, recorder) as source:
            with_loss = self.spec.target_loss is not None
            evaluation = Evaluation(self.seated, shape, source, with_loss)
            execute(actions, evaluation.perform, self.seated.mail, recorder)
        return evaluation.score()

    def _tell(self, notes: tuple[str, ...]) -> None:
        total, microbatch = self.data.num_train, self.spec.plan.microbatch
        epoch = Epoch.shuffled(self.data.train, self.cutting, self.spec.seed, 0)
        used = sum(epoch.form(k)[0] for k in range(self.shape.microbatches))
        text = f"Each epoch trains on {used} of {total} samples in microbatches of {microbatch}"
        left = "; those left over are others in every epoch." if used < total else "."
        self.reporter.log(text + left)
        if self.spec.has_target and self.data.held_out is None:
            self.reporter.log("No samples are held out, so the target is never met.")
        for note in notes:
            self.reporter.log(note)


def cutting_of(spec: TrainSpec) -> Cutting:
    """Whole rounds of the plan's replicas, lanes and batches. A schedule that updates by rounds
    of microbatches has batches of 1."""
    plan = spec.plan
    unit = plan.lanes * math.lcm(*plan.partition.replicas, _batch(spec))
    return Cutting(plan.microbatch, unit, spec.data.last == "keep", spec.data.buckets)


def segment_shape(spec: TrainSpec, data: DataSet, cutting: Cutting) -> Shape:
    """One epoch. Raises `InvalidInput` where the samples do not fill one round."""
    plan, microbatches = spec.plan, cutting.count(data.train)
    if microbatches == 0:
        raise InvalidInput(
            f"{data.num_train} training samples of {data.name} are fewer than one round of "
            f"{cutting.unit} microbatches of {plan.microbatch}",
            "Use smaller microbatches, fewer of them per batch, or more data.",
        )
    return Shape(
        plan.partition.replicas,
        microbatches,
        _batch(spec),
        chunks=plan.partition.chunks,
        advance=plan.advance,
        lanes=plan.lanes,
        recompute=plan.recompute,
    )


def _batch(spec: TrainSpec) -> int:
    return spec.plan.batch if schedule(spec.plan.schedule).batched else 1
