"""The loss of every minibatch and what it logs, told a few times a second; what held-out samples
say, told at once, and in the log as well."""

import time
from collections import defaultdict, deque
from collections.abc import Mapping
from functools import partial

from backend.pipeline.shape import Shape
from backend.runs.events import (
    ENERGY,
    LOSS,
    OF_SITES,
    SENT,
    SENT_PLAIN,
    SUMS_PLAIN,
    SUMS_SENT,
    Event,
    Metrics,
    Progress,
)
from backend.units import bytes_text, joules_text
from workers.runtime.reports.reporter import Reporter

SECONDS_BETWEEN_LINES = 0.25
REMEMBERED = 4096
"""Losses that the other replicas of the last stage keep, should the one that tells them be lost
before it has told all."""

Points = deque[tuple[int, float, float]]


class Losses:
    """One epoch's losses. `is_reporter` is true on one rank, which prints them; one that `leads`
    prints the local loss of its stage."""

    def __init__(
        self,
        reporter: Reporter,
        is_reporter: bool,
        shape: Shape,
        epoch: int,
        epochs: int,
        leads: bool = False,
    ) -> None:
        self._prints = is_reporter or leads
        self._reporter, self._is_reporter = reporter, is_reporter
        self._batch = shape.batch
        self._per_epoch = shape.num_microbatches // shape.batch
        self._epochs, self._total = epochs, self._per_epoch * epochs
        most = None if self._prints else REMEMBERED
        self._points: dict[str, Points] = defaultdict(partial(deque, maxlen=most))
        self._told = time.monotonic()
        self._sum, self._num = 0.0, 0
        self.epoch = epoch

    def minibatch(self, microbatch: int) -> int:
        """The minibatch of this epoch's `microbatch`, counted from the start of the run."""
        return self.epoch * self._per_epoch + microbatch // self._batch

    def add(
        self, microbatch: int, loss: float, logged: Mapping[str, float], name: str = LOSS
    ) -> None:
        """The mean loss of an update whose last microbatch is `microbatch`, and the means of what
        it logged."""
        step, now = self.minibatch(microbatch), time.time()
        if name == LOSS:
            self._sum, self._num = self._sum + loss, self._num + 1
        for each, value in {name: loss, **logged}.items():
            self._points[each].append((step, value, now))
        if self._prints and time.monotonic() - self._told > SECONDS_BETWEEN_LINES:
            self.tell()

    def tell(self, remembered: bool = False) -> None:
        """Print what has not been printed yet, and how far the run is; a rank that is not the one
        to print it does so where it shall tell what it has `remembered`."""
        if not self._prints and not remembered:
            return
        for name, points in self._points.items():
            steps, values, times = zip(*points, strict=True)
            self._reporter(Metrics(name, steps, values, times, self.epoch))
        if losses := self._points.get(LOSS):
            self._reporter(Progress("train", losses[-1][0] + 1, self._total))
        self._points.clear()
        self._told = time.monotonic()

    def evaluated(self, done: int, score: Mapping[str, float]) -> None:
        """Print the rest and what the held-out samples say after `done` microbatches."""
        self.tell()
        for name, value in score.items():
            self._tell_one(name, value, done)
        if score:
            told = ", ".join(f"{name} {value:.4g}" for name, value in score.items())
            self._log(f"evaluated after {self.minibatch(done):,} minibatches: {told}")

    def end(self, seconds: float, samples: int, done: int) -> None:
        """Print the throughput of an epoch that ends after `done` microbatches."""
        if seconds:
            self._tell_one("throughput", samples / seconds, done)
        if seconds and self._num:
            loss, rate = self._sum / self._num, samples / seconds
            self._log(f"mean loss {loss:.4g}, {seconds:.3g} s, {rate:,.1f} samples/s")

    def sent(self, num_bytes: float, plain_bytes: float, done: int) -> None:
        """Print what went between stages in an epoch that ends after `done` microbatches."""
        self._tell_one(SENT, num_bytes, done)
        self._tell_one(SENT_PLAIN, plain_bytes, done)
        self._log(
            f"{bytes_text(num_bytes)} sent between stages, {bytes_text(plain_bytes)} without codecs"
        )

    def summed(self, num_bytes: float, plain_bytes: float, done: int) -> None:
        """Print what replicas sent to sum gradients likewise."""
        self._tell_one(SUMS_SENT, num_bytes, done)
        self._tell_one(SUMS_PLAIN, plain_bytes, done)
        self._log(
            f"{bytes_text(num_bytes)} sent to sum gradients, {bytes_text(plain_bytes)} without a "
            "codec"
        )

    def between_sites(self, num_bytes: float, sums: float, spread: float, done: int) -> None:
        """Print what went between sites likewise, and how far they are apart."""
        for name, value in zip(OF_SITES, (num_bytes, sums, spread), strict=True):
            self._tell_one(name, value, done)
        self._log(
            f"{bytes_text(num_bytes)} sent between sites, {bytes_text(sums)} as sums of gradients; "
            f"weights of sites are {spread:.2%} apart"
        )

    def took(self, joules: float, done: int) -> None:
        """Print the joules of a sample in an epoch that ends after `done` microbatches."""
        self._tell_one(ENERGY, joules, done)
        self._log(f"{joules_text(joules)} per sample")

    def _log(self, text: str) -> None:
        if self._is_reporter:
            self._reporter.log(f"epoch {self.epoch + 1} of {self._epochs}: {text}")

    def _tell_one(self, name: str, value: float, done: int) -> None:
        if self._is_reporter:
            step = self.minibatch(done) - 1
            self._reporter(_metric(name, step, value, self.epoch))


def _metric(name: str, step: int, value: float, epoch: int) -> Event:
    return Metrics(name, (step,), (value,), (time.time(),), epoch)
