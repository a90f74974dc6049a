"""A training run on one rank: load, then epochs of training and evaluation, then save."""

import math
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

from backend.errors import InvalidInput
from backend.pipeline.actions import Step
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.runs.events import Clock, Progress
from backend.runs.job import Job
from backend.runs.request.spec import TrainSpec
from workers.data import catalog
from workers.definitions.loader import load
from workers.runtime.checkpoints.checkpoints import Checkpoints
from workers.runtime.checkpoints.stage_state import copy_of, marks_of, resume
from workers.runtime.checkpoints.trained_model import save
from workers.runtime.compute.local_heads.local_loss import LocalLosses
from workers.runtime.compute.model import layers_of
from workers.runtime.compute.variants import bundle_specs, one_way_stages
from workers.runtime.execution.epoch_report import EpochReport
from workers.runtime.execution.evaluation import Evaluation
from workers.runtime.execution.executor import execute
from workers.runtime.execution.kept_samples import kept_samples
from workers.runtime.execution.losses import Losses
from workers.runtime.execution.program import RankProgram, evaluation_program, training_program
from workers.runtime.execution.stopping import Stopping
from workers.runtime.execution.training import Training
from workers.runtime.failures import is_lost_peer
from workers.runtime.messages.groups import is_reporter, led_stages
from workers.runtime.messages.world import World
from workers.runtime.rank import Rank, check_ranks, make_rank, stage_bounds
from workers.runtime.reports.building import building
from workers.runtime.reports.core_meter import CoreMeter
from workers.runtime.reports.recorder import Recorder
from workers.runtime.reports.reporter import Reporter
from workers.runtime.samples.epoch import Epoch
from workers.runtime.samples.loading import Loading, loading
from workers.runtime.samples.segments import cutting_of, epoch_shape, evaluated_after, num_updates


def train(job: Job, world: World, reporter: Reporter) -> int:
    """Train as the job says and save the weights into its folder; the epochs done.

    Every rank calls it. Raises what `layers_of`, `catalog.load` and `make_rank` raise,
    `ModelRaised` and `LossNotFinite`.
    """
    if not isinstance(job.spec, TrainSpec):
        raise InvalidInput(f"job {job.name!r} asks for a {job.spec.kind} run, not for training")
    run = _TrainingRun(job, job.spec, world, reporter)
    reporter.started()
    try:
        epochs = run.epochs()
    except Exception as error:
        if is_lost_peer(error):
            run.checkpoints.rescue()
        raise
    reporter.watch(None)
    run.checkpoints.close()
    save(run.rank, job.spec.plan, run.companions, Path(job.folder), reporter)
    run.keep_end()
    return epochs


class _TrainingRun:
    """What stays the same over the epochs of one run."""

    def __init__(self, job: Job, spec: TrainSpec, world: World, reporter: Reporter) -> None:
        if world.rank == 0:
            reporter(Progress("load", 0, 1))
        self.spec, self.reporter, self.folder = spec, reporter, Path(job.folder)
        with building(reporter, job):
            definition = load(Path(job.definition), spec.parameters)
        self.log, self.metrics = definition.log, definition.metrics
        self.has_loss = True
        self.data = catalog.load(spec.data, definition, job.data, job.tokenizer)
        self.companions = {**self.data.companions, **definition.companions}
        self.cutting = cutting_of(spec)
        self.shape = epoch_shape(spec, self.data, self.cutting)
        check_ranks(world, self.shape)
        schedule(spec.plan.schedule).check(self.shape)
        with building(reporter, job):
            layers = layers_of(job, spec, definition, self.data, self.cutting, world.device)
        quiet = one_way_stages(bundle_specs(layers.base, stage_bounds(spec)))
        self.shape = replace(self.shape, one_way=quiet)
        self.programs = {self.shape.num_microbatches: self._program(self.shape, world.rank)}
        self._check_exchanges(self.programs[self.shape.num_microbatches])
        own = LocalLosses.of(spec, layers.base.num_scores, self.data, world.device)
        self.rank: Rank = make_rank(world, self.shape, definition, layers, spec, losses=own)
        self.is_reporter = is_reporter(self.rank.coordinates)
        copy, marks = partial(copy_of, self.rank), partial(marks_of, self.rank)
        self.checkpoints = Checkpoints(
            world, self.rank.coordinates, copy, marks, spec, self.shape, self.folder, reporter
        )
        say = reporter.log if self.is_reporter else _nothing
        self.stopping = Stopping(spec, job, world, say)
        self.done, self.first = job.epoch, 0
        self.ended: tuple[int, int] | None = None
        self.report = EpochReport(self.rank, spec.plan)
        forms = self.cutting.forms(self.data.train)
        kept = kept_samples(self.rank, spec.plan, self.data.num_train, forms)
        if job.checkpoint:
            checkpoint = Path(job.checkpoint)
            self.first = resume(self.rank, spec, self.shape, checkpoint, job.epoch, job.samples)
        if self.is_reporter:
            self._tell((*self.data.notes, *layers.base.notes, *filter(None, [kept])))

    def _check_exchanges(self, epoch: RankProgram) -> None:
        """Raises `InvalidInput` where sites would not exchange once: the model that they have
        together would be the one that they began with."""
        sites = self.spec.plan.sites
        steps = Counter(action.stage for action in epoch.actions if isinstance(action, Step))
        updates = self.spec.epochs * min(steps.values(), default=0)
        if sites and steps and updates < sites.period:
            raise InvalidInput(
                f"sites exchange every {sites.period:,} updates, and the run has {updates:,}",
                f"Exchange every {updates:,} or sooner, or train for more epochs.",
            )

    def epochs(self) -> int:
        """Train epoch by epoch until the target or the last; how many were done."""
        for number in range(self.done, self.spec.epochs):
            losses = self._losses(number)
            self.checkpoints.begin(number, losses.tell)
            done = self._epoch(number, losses)
            self.ended = number, self.shape.num_microbatches if done is None else done
            if done is not None:
                return number + (done == self.shape.num_microbatches)
            self.first = 0
            if number + 1 < self.spec.epochs:
                self.checkpoints.epoch_over()
        return self.spec.epochs

    def _losses(self, number: int) -> Losses:
        rank, is_reporter = self.rank, self.is_reporter
        leads = any(rank.stages.modules[n].local for n in led_stages(rank.coordinates))
        return Losses(self.reporter, is_reporter, self.shape, number, self.spec.epochs, leads)

    def keep_end(self) -> None:
        """The checkpoint of the end, once the model is saved: an attempt that is lost before that
        is made again from an earlier one, and ends where this one did."""
        if self.ended is not None:
            self.checkpoints.end(*self.ended)
            self.checkpoints.close()

    def _epoch(self, number: int, losses: Losses) -> int | None:
        """What is left of an epoch, from evaluation to evaluation; the microbatches after which the
        training ends, None where it goes on. The timeline is that of the first stretch."""
        last = self.shape.num_microbatches
        epoch = Epoch.shuffled(self.data.train, self.cutting, self.spec.seed, number)
        seconds, samples, is_first = 0.0, 0, True
        spec, shape = self.spec, self.shape
        for stop in evaluated_after(shape, number, spec.evaluate, spec.stop.updates):
            if stop < self.first or stop == self.first < last:
                continue  # it was evaluated before the checkpoint was taken
            if self.first < stop:
                part = replace(epoch, first=self.first)
                took = self._train(number, part, stop - self.first, losses, is_first)
                seconds, samples = seconds + took[0], samples + took[1]
            self.first, is_first = stop, False
            score = self._evaluate()
            losses.evaluated(stop, score)
            ends = self.stopping.ends(score, num_updates(shape, number, stop))
            if spec.checkpoints.best and self.stopping.is_best:
                self.checkpoints.best(number, stop)
            if ends or stop == last:
                losses.end(seconds, samples, stop)
                self.report.tell(losses, samples, stop)
            if ends:
                return stop
        return None

    def _program(self, shape: Shape, rank: int) -> RankProgram:
        return training_program(self.spec.plan.schedule, shape, rank)

    def _train(
        self, number: int, epoch: Epoch, count: int, losses: Losses, is_first: bool
    ) -> tuple[float, int]:
        """The next `count` microbatches of an epoch, until the pipeline is empty; their seconds and
        samples."""
        if count not in self.programs:
            shape = replace(self.shape, num_microbatches=count)
            self.programs[count] = self._program(shape, self.rank.coordinates.rank)
        program = self.programs[count]
        world, recorder, meter = self.rank.world, self._recorder(), CoreMeter()
        self.checkpoints.watch(recorder.clock)
        self._tell_clock(number, recorder)
        with self._loading(epoch, program, recorder) as source:
            training = Training(
                self.rank, program, source, losses, self.spec.seed, self.checkpoints, self.log
            )
            perform = training.perform if world.on_gpu else meter.over(training.perform)
            with self.report.training():
                execute(program.actions, perform, self.rank.messages, recorder)
        seconds = recorder.now()
        if is_first:
            if not world.on_gpu:
                self.reporter(meter.told(world.rank, number, world.host))
            self.reporter(recorder.write(self.folder, number))
            if source.spans:
                self.reporter(recorder.write(self.folder, number, "loading", source.spans))
            if copies := recorder.within(self.checkpoints.taken):
                self.reporter(recorder.write(self.folder, number, "saving", copies))
        return seconds, sum(epoch.form(k)[0] for k in range(count))

    def _recorder(self) -> Recorder:
        """That of a segment which begins now; the heartbeat tells how far it is."""
        recorder = Recorder(self.rank.world)
        self.reporter.watch(recorder)
        return recorder

    def _tell_clock(self, number: int, recorder: Recorder) -> None:
        """Where there are several hosts: how far this one's clock is from that of rank 0."""
        world, offset = self.rank.world, recorder.offset
        if world.hosts > 1 and world.host > 0:
            self.reporter(Clock(world.rank, number, offset.seconds, offset.error))
            self.reporter.log(
                f"The clock of rank {world.rank} (host {world.host}) is "
                f"{offset.seconds:+.6f} s from rank 0's, known to {offset.error * 1e6:.0f} us; "
                "the timeline is drawn on rank 0's."
            )

    def _loading(
        self, epoch: Epoch, program: RankProgram, recorder: Recorder
    ) -> AbstractContextManager[Loading]:
        rank, modules = self.rank.coordinates.rank, self.rank.stages.modules
        judging = [number for number, stage in modules.items() if stage.has_loss]
        return loading(epoch, program.actions, judging, rank, recorder.clock)

    def _evaluate(self) -> dict[str, float]:
        """What the held-out samples say; nothing if there are none. Of several pipelines
        the first evaluates."""
        if self.data.held_out is None:
            return {}
        cutting = replace(self.cutting, unit=math.lcm(*self.shape.rounds))
        epoch = Epoch.in_order(self.data.held_out, cutting)
        shape = Shape(
            self.shape.replicas,
            len(epoch.groups),
            chunks=self.shape.chunks,
            placement=self.shape.placement,
            shares=self.shape.shares,
        )
        program = evaluation_program(shape, self.rank.coordinates.rank)
        recorder = self._recorder()
        with self._loading(epoch, program, recorder) as source:
            needed = self.spec.needs_loss
            evaluation = Evaluation(self.rank, shape, source, self.metrics, needed)
            execute(program.actions, evaluation.perform, self.rank.messages, recorder)
        if self.is_reporter and evaluation.problem and self.has_loss:
            self.has_loss = False
            self.reporter.log(
                "The held-out loss is not known: the loss does not take what the model gives "
                f"in evaluation mode ({evaluation.problem})."
            )
        return evaluation.score()

    def _tell(self, notes: tuple[str, ...]) -> None:
        total, microbatch = self.data.num_train, self.spec.plan.microbatch
        epoch = Epoch.shuffled(self.data.train, self.cutting, self.spec.seed, 0)
        used = sum(epoch.form(k)[0] for k in range(self.shape.num_microbatches))
        text = f"Each epoch trains on {used} of {total} samples in microbatches of {microbatch}"
        left = "; which ones are left over changes from epoch to epoch." if used < total else "."
        self.reporter.log(text + left)
        if self.spec.has_target and self.data.held_out is None:
            self.reporter.log("No samples are held out, so the target is never met.")
        if share := self.spec.optimizer.ema:
            self.reporter.log(
                f"Averaged weights are evaluated and saved: of the average {share:g} stays at each "
                "update. Checkpoints have both."
            )
        for note in notes:
            self.reporter.log(note)


def _nothing(text: str) -> None:
    """One rank speaks for all."""
