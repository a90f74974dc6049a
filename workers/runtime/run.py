"""A training run on one rank: load, then epochs of training and evaluation, then save."""

import math
from dataclasses import replace
from pathlib import Path

from backend.errors import InvalidInput
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.forward_only import FORWARD_ONLY
from backend.pipeline.shape import Shape
from backend.pipeline.verify import check
from backend.runs.events import Progress
from backend.runs.job import Job
from backend.runs.spec import TrainSpec
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.definitions.reorder import in_order
from workers.runtime import data
from workers.runtime.checkpoint import Checkpoints
from workers.runtime.data import Epoch
from workers.runtime.evaluation import Evaluation
from workers.runtime.executor import execute
from workers.runtime.losses import Losses
from workers.runtime.recorder import Recorder
from workers.runtime.reporter import Reporter
from workers.runtime.saving import save
from workers.runtime.seated import Seated, seated
from workers.runtime.stage import autocast
from workers.runtime.training import Training
from workers.runtime.world import World


def train(job: Job, world: World, reporter: Reporter) -> int:
    """Train as the job says and save the weights into its folder; the epochs done.

    Every rank calls it. Raises what `prepare`, `data.load` and `seated` raise, `ModelRaised`
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
        self.data = data.load(spec.data, definition)
        self.shape = segment_shape(spec, self.data.num_train)
        self.program = check(lower(schedule(spec.plan.schedule), self.shape))
        batch = self.data.first(spec.plan.microbatch)
        with autocast(world.device, spec.precision):  # bundles have the cast dtypes
            layered = prepare(
                definition,
                batch,
                spec.seed,
                world.device,
                granularity=spec.granularity or None,
                weights=Path(job.weights) if job.weights else None,
            )
        layered = in_order(layered, spec.plan.partition.order)
        self.seated: Seated = seated(world, self.shape, definition, layered, spec)
        self.checkpoints = Checkpoints(self.seated, spec, self.shape, self.folder, reporter)
        self.done, self.first = job.epoch, 0
        if job.checkpoint:
            self.first = self.checkpoints.resume(Path(job.checkpoint), job.epoch, job.samples)
        if self.seated.is_reporter:
            self._tell(layered.notes)

    def epochs(self) -> int:
        """Train epoch by epoch until the target or the last; how many were done."""
        for number in range(self.done, self.spec.epochs):
            losses = Losses(
                self.reporter, self.seated.is_reporter, self.shape, number, self.spec.epochs
            )
            self.checkpoints.begin(number, losses.tell)
            shape = self._left()
            seconds = self._train(number, shape, losses) if shape else 0.0
            accuracy = self._evaluate()
            samples = shape.microbatches * self.spec.plan.microbatch if shape else 0
            losses.end(seconds, samples, accuracy)
            self.first = 0
            target = self.spec.target_accuracy
            if target is not None and accuracy is not None and accuracy >= target:
                return number + 1
            if number + 1 < self.spec.epochs:
                self.checkpoints.epoch_over()
        return self.spec.epochs

    def _left(self) -> Shape | None:
        """What is left of an epoch; None where a checkpoint was taken at its end."""
        left = self.shape.microbatches - self.first
        return replace(self.shape, microbatches=left) if left else None

    def _train(self, number: int, shape: Shape, losses: Losses) -> float:
        """One segment; its seconds."""
        microbatch, seed = self.spec.plan.microbatch, self.spec.seed
        epoch = Epoch.shuffled(
            self.data.train, microbatch, shape.microbatches, seed, number, self.first
        )
        program = self.program
        if self.first:
            program = check(lower(schedule(self.spec.plan.schedule), shape))
        training = Training(self.seated, program, epoch, losses, self.checkpoints)
        recorder = Recorder(self.seated.world)
        actions = program.ranks[self.seated.seat.rank]
        execute(actions, training.perform, self.seated.mail, recorder)
        seconds = recorder.now()
        self.reporter(recorder.write(self.folder, number))
        return seconds

    def _evaluate(self) -> float | None:
        """The share of held-out targets predicted right; None if there are none, or no classes."""
        if not self.data.num_held_out:
            return None
        microbatch = self.spec.plan.microbatch
        shape = evaluation_shape(self.shape, self.data.num_held_out, microbatch)
        epoch = Epoch.in_order(self.data.held_out, microbatch, shape.microbatches)
        evaluation = Evaluation(self.seated, shape, epoch)
        programs = lower(FORWARD_ONLY, shape).ranks  # with several lanes the first evaluates
        rank = self.seated.seat.rank
        actions = programs[rank] if rank < len(programs) else ()
        execute(actions, evaluation.perform, self.seated.mail, Recorder(self.seated.world))
        correct, counted = self.seated.world.total([evaluation.correct, evaluation.counted])
        return correct / counted if counted else None

    def _tell(self, notes: tuple[str, ...]) -> None:
        total, microbatch = self.data.num_train, self.spec.plan.microbatch
        used = self.shape.microbatches * microbatch
        text = f"Each epoch trains on {used} of {total} samples in microbatches of {microbatch}"
        left = "; those left over are others in every epoch." if used < total else "."
        self.reporter.log(text + left)
        for note in notes:
            self.reporter.log(note)


def segment_shape(spec: TrainSpec, samples: int) -> Shape:
    """One epoch: as many whole rounds of replicas and batches as the samples fill.
    A schedule that updates by rounds of microbatches has batches of 1. Raises `InvalidInput`
    where the samples do not fill one round."""
    plan = spec.plan
    replicas, lanes = plan.partition.replicas, plan.lanes
    batch = plan.batch if schedule(plan.schedule).batched else 1
    unit = lanes * math.lcm(*replicas, batch)
    rounds = samples // (plan.microbatch * unit)
    if rounds == 0:
        raise InvalidInput(
            f"{samples} training samples are fewer than one round of {unit} microbatches of "
            f"{plan.microbatch}",
            "Use smaller microbatches, fewer of them per batch, or more data.",
        )
    return Shape(
        replicas,
        rounds * unit,
        batch,
        chunks=plan.partition.chunks,
        advance=plan.advance,
        lanes=lanes,
        recompute=plan.recompute,
    )


def evaluation_shape(training: Shape, samples: int, microbatch: int) -> Shape:
    """Enough microbatches for all samples, shared evenly by the replicas."""
    unit = math.lcm(*training.replicas)
    rounds = -(-samples // (microbatch * unit))
    return Shape(training.replicas, max(1, rounds) * unit, chunks=training.chunks)
