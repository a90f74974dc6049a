"""The loss of every minibatch, told a few times a second."""

import time

from backend.pipeline.shape import Shape
from backend.runs.events import HELD_OUT_LOSS, Event, Metrics, Progress
from workers.runtime.execution.evaluation import Score
from workers.runtime.reports.reporter import Reporter

SECONDS_BETWEEN_LINES = 0.25


class Losses:
    """One epoch's losses. `is_reporter` is true on one rank, which prints them."""

    def __init__(
        self, reporter: Reporter, is_reporter: bool, shape: Shape, epoch: int, epochs: int
    ) -> None:
        self._reporter, self._is_reporter = reporter, is_reporter
        self._batch = shape.batch
        self._per_epoch = shape.num_microbatches // shape.batch
        self._total = self._per_epoch * epochs
        self._points: list[tuple[int, float, float]] = []
        self._told = time.monotonic()
        self.epoch = epoch

    def minibatch(self, microbatch: int) -> int:
        """The minibatch of this epoch's `microbatch`, counted from the start of the run."""
        return self.epoch * self._per_epoch + microbatch // self._batch

    def add(self, microbatch: int, loss: float) -> None:
        """The mean loss of an update whose last microbatch is `microbatch`."""
        if self._is_reporter:
            self._points.append((self.minibatch(microbatch), loss, time.time()))
            if time.monotonic() - self._told > SECONDS_BETWEEN_LINES:
                self.tell()

    def tell(self) -> None:
        """Print what has not been printed yet, and how far the run is."""
        if self._points:
            steps, values, times = zip(*self._points, strict=True)
            self._reporter(Metrics("loss", steps, values, times, self.epoch))
            self._reporter(Progress("train", steps[-1] + 1, self._total))
        self._points = []
        self._told = time.monotonic()

    def end(self, seconds: float, samples: int, score: Score) -> None:
        """Print the rest, the epoch's throughput, and what the held-out samples say."""
        self.tell()
        if self._is_reporter:
            if seconds:
                self._reporter(self._epoch_metric("throughput", samples / seconds))
            if score.accuracy is not None:
                self._reporter(self._epoch_metric("accuracy", score.accuracy))
            if score.loss is not None:
                self._reporter(self._epoch_metric(HELD_OUT_LOSS, score.loss))

    def _epoch_metric(self, name: str, value: float) -> Event:
        step = (self.epoch + 1) * self._per_epoch - 1
        return Metrics(name, (step,), (value,), (time.time(),), self.epoch)
