"""When a rank copies its part of the training's state, and how the ranks agree without a stop.

A checkpoint is taken after a number of microbatches that every stage has whole updates for.
Each rank copies its stages right after the update that ends there, at its own time; no rank
waits for another one. Where the clock or a cancel asks for one, rank 0 chooses a number that
it has not forwarded yet and writes it into the job's folder: no other rank can make that update
before it has met a microbatch that came after, so it finds the number when it gets there. To other
hosts the agents bring it, so it is chosen some time ahead; a rank that is past it when it comes
saves nothing, and the checkpoint never becomes whole.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import RankCoordinates, Shape
from backend.planning.thresholds import Thresholds
from backend.runs.attempts.checkpoints import stage_file
from backend.runs.events import Chosen, Rescuing, Saved
from backend.runs.request.spec import TrainSpec
from workers.runtime.background import BackgroundWorker
from workers.runtime.checkpoints.forward_rate import ForwardRate
from workers.runtime.checkpoints.stage_copy import StageCopy
from workers.runtime.messages.groups import led_stages
from workers.runtime.messages.world import World
from workers.runtime.reports.reporter import Reporter
from workers.runtime.samples.segments import is_counted, num_updates, round_size

FOLDER = "checkpoints"
REQUEST = "save-now"
"""A file of this name in the job's folder asks for a checkpoint at once."""
FIRST = 5.0
"""Seconds before the first one that the clock asks for, where more were given."""
LOOK = 0.02
"""Seconds between looks for the request."""
AHEAD, AHEAD_NOW = 2.0, 0.5
"""Seconds by which other hosts are told before a checkpoint that the clock asks for, and one that
was asked for at once."""


CopyOf = Callable[[int, bool], dict[str, Tensor]]
"""From a stage to copies, on the CPU, of all that it needs to go on; see `stage_state.copy_of`."""
MarksOf = Callable[[int], object]
"""From a stage to what is another one once its buffers have changed."""


class Checkpoints:
    """One per rank and run. `shape` is that of a whole epoch; microbatches are counted from
    the start of the epoch. A stage is saved by its first replica, and with sharded state, sums
    by thresholds or split layers by all of them, each what it keeps."""

    def __init__(
        self,
        world: World,
        coordinates: RankCoordinates,
        copy_of: CopyOf,
        marks_of: MarksOf,
        spec: TrainSpec,
        shape: Shape,
        folder: Path,
        reporter: Reporter,
    ) -> None:
        self._world, self._coordinates = world, coordinates
        coded, plan = isinstance(spec.plan.codec_of_sums, Thresholds), spec.plan
        apart = plan.shard_state or coded or bool(plan.splits)
        self._saved = coordinates.stages if apart else led_stages(coordinates)
        per_chunk = sum(shape.replicas) if apart else shape.pipeline_size
        self._num_files = shape.num_pipelines * shape.chunks * per_chunk
        self._copy_of, self._marks_of, self._spec, self._shape = copy_of, marks_of, spec, shape
        self._folder, self._reporter = folder, reporter
        own = round_size(shape.rounds, shape.batch, shape.num_pipelines)
        self._unit = math.lcm(own, spec.round)
        flushes = schedule(spec.plan.schedule).flushes and shape.num_pipelines == 1
        self._can_rescue = flushes and max(shape.replicas) > 1 and not apart
        self._newest: dict[int, tuple[int, int, object]] = {}
        self._kept: dict[int, tuple[int, int]] = {}
        # one copy waits while another is written: at most twice the rank's state
        self._writer = BackgroundWorker[StageCopy](lambda copy: copy.write(reporter), most=1)
        self._rate = ForwardRate()
        self._epoch = 0
        self._tell: Callable[[bool], None] = _nothing
        self._fresh: dict[int, int] = {}
        self._clock, self.taken = time.monotonic, list[tuple[float, float]]()
        now = time.monotonic()
        self._due = math.inf
        self._next_look, self._is_asked, self._is_answered = now, False, False

    def begin(self, epoch: int, tell: Callable[[bool], None]) -> None:
        """An epoch begins; `tell` prints the losses that were not printed yet, see `Losses`."""
        if self._due == math.inf:
            self._due = time.monotonic() + min(FIRST, self._spec.checkpoints.seconds)
        self._epoch, self._tell, self._fresh, self._rate = epoch, tell, {}, ForwardRate()

    def watch(self, clock: Callable[[], float]) -> None:
        """A segment begins, in whose time `taken` tells from when to when copies were made."""
        self._clock, self.taken = clock, []

    def forward(self, microbatch: int) -> None:
        if self._coordinates.rank == 0:
            if not self._is_one_host:
                self._rate.note(microbatch, time.monotonic())
            if self._is_wanted() and (ahead := self._ahead()) is not None:
                self._choose(((microbatch + ahead) // self._unit + 1) * self._unit)

    def _ahead(self) -> int | None:
        """Microbatches until every rank has heard what is chosen now; None: not known yet."""
        if self._is_one_host:
            return 0
        return self._rate.within(AHEAD_NOW if self._is_asked_now else AHEAD)

    def _choose(self, done: int) -> None:
        """Let all ranks save after so many; what lies beyond the epoch is left to its end."""
        if done < self._shape.num_microbatches:
            chosen = Chosen(0, self._epoch, done)
            (self._folder / chosen.file).touch()
            if not self._is_one_host:
                self._reporter(chosen)
            self._answered()

    def updating(self, stage: int, microbatches: int) -> None:
        per_round = self._shape.num_pipelines * self._shape.batch
        self._fresh[stage] = -(-microbatches // per_round) * per_round

    def updated(self) -> None:
        if self._shape.num_pipelines == 1:
            for number in tuple(self._fresh):
                self._note(number, self._epoch, self._fresh[number])
                self._take_if_due(number)

    def averaged(self, stage: int) -> None:
        self._take_if_due(stage)

    def epoch_over(self) -> None:
        """The pipeline is empty. Every rank calls it."""
        for stage in self._coordinates.stages:
            self._note(stage, self._epoch + 1, 0)
        agreed = self._world.agreed(float(self._is_wanted()))
        if agreed or self._is_counted(self._shape.num_microbatches):
            for stage in self._saved:
                self._take(stage, self._epoch + 1, 0)
            self._answered()

    def best(self, epoch: int, done: int) -> None:
        """The evaluation after `done` microbatches of an epoch was the best one. The pipeline is
        empty; every rank calls it."""
        whole = done == self._shape.num_microbatches
        for stage in self._saved:
            self._take(stage, epoch + whole, 0 if whole else done, best=True)

    def end(self, epoch: int, done: int) -> None:
        """The training is over after `done` microbatches of an epoch: what goes on from here begins
        with this state. The pipeline is empty; every rank calls it."""
        whole = done == self._shape.num_microbatches
        place = (epoch + 1, 0) if whole else (epoch, done)
        for stage in self._saved:
            if self._kept.get(stage) != place:
                self._take(stage, *place)

    def close(self) -> None:
        """Wait until every copy is written."""
        self._writer.join()

    def rescue(self) -> None:
        """Another rank is lost, in the middle of an update: save the stages as they were before
        it, where nothing else is needed to make it again. Every replica does, because the first one
        may be the one that is lost; if what all ranks have left is of one update and has every
        stage, it is a checkpoint like any other."""
        if not self._can_rescue:
            return
        self._reporter(Rescuing(self._coordinates.rank))
        self.close()
        for stage, (epoch, done, marks) in self._newest.items():
            is_new = self._kept.get(stage) != (epoch, done)
            if is_new and done % self._unit == 0 and marks == self._marks_of(stage):
                self._take(stage, epoch, done, alone=True)
        self.close()

    def _note(self, stage: int, epoch: int, done: int) -> None:
        if self._can_rescue:
            self._newest[stage] = epoch, done, self._marks_of(stage)

    def _take_if_due(self, stage: int) -> None:
        done = self._fresh.pop(stage)
        if stage not in self._saved or done % self._unit:
            return
        if done < self._shape.num_microbatches and self._is_due(done):
            self._take(stage, self._epoch, done)

    def _is_due(self, done: int) -> bool:
        chosen = self._folder / Chosen(0, self._epoch, done).file
        return chosen.exists() or self._is_counted(done)

    @property
    def _is_one_host(self) -> bool:
        return self._world.hosts == 1

    def _is_counted(self, done: int) -> bool:
        """Does a multiple of the asked for updates lie in the round that ends here?"""
        before, after = (self._step(self._epoch, k) for k in (done - self._unit, done))
        return is_counted(self._spec.checkpoints.updates, before, after)

    def _take(
        self, stage: int, epoch: int, done: int, alone: bool = False, best: bool = False
    ) -> None:
        """Copy now, write later; the losses so far are told before the checkpoint is."""
        start = self._clock()
        self._kept[stage] = epoch, done
        self._tell(alone)
        pipeline, place = self._coordinates.pipeline, self._place(epoch, done, best)
        if alone:
            place = place.with_name(f"{place.name}-{self._coordinates.rank}")
        replica = self._coordinates.replica
        place.mkdir(parents=True, exist_ok=True)
        saved = Saved(
            self._coordinates.rank,
            epoch,
            done * self._spec.plan.microbatch,
            self._step(epoch, done),
            str(place / stage_file(stage, pipeline, 0 if alone else replica)),
            self._num_files,
            best,
        )
        self._writer.put(StageCopy(self._copy_of(stage, alone), pipeline, saved))
        self.taken.append((start, self._clock()))

    def _step(self, epoch: int, done: int) -> int:
        return num_updates(self._shape, epoch, done)

    def _place(self, epoch: int, done: int, best: bool) -> Path:
        """That of the best is its own: an equal one may be on its way from the other."""
        return self._folder / FOLDER / f"{epoch}-{done}{'-best' if best else ''}"

    def _is_wanted(self) -> bool:
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK
            self._is_asked = (self._folder / REQUEST).exists()
        is_time = self._spec.checkpoints.seconds > 0 and now >= self._due
        return is_time or self._is_asked_now

    @property
    def _is_asked_now(self) -> bool:
        return self._is_asked and not self._is_answered

    def _answered(self) -> None:
        self._is_answered = self._is_asked
        self._due = time.monotonic() + self._spec.checkpoints.seconds


def _nothing(remembered: bool) -> None:
    """No losses are to be told before the first epoch."""
