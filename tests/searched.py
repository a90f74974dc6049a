"""What tests let a searcher do: to go on until it is ended, to fail, to be killed."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

from backend.errors import InvalidInput
from backend.prediction.answer import Reply, at_once
from backend.prediction.question import Question
from backend.prediction.watch import Watch


def numbers(most: int, watch: Watch) -> Iterator[int]:
    """0, 1, ... and how far it is before each."""
    for number in range(most):
        watch.progress("counting", number, most)
        yield number


def until_ended(watch: Watch) -> Iterator[str]:
    """A first answer, and the last one once somebody ends it."""
    yield "first"
    while not watch.stop():
        time.sleep(0.005)
    yield "last"


def endless(watch: Watch) -> Iterator[str]:
    """One that listens to nobody."""
    yield "first"
    while True:
        time.sleep(0.05)


def whose(variable: str, watch: Watch) -> Iterator[tuple[int, str | None]]:
    """The number of its process, and what a variable is there."""
    yield os.getpid(), os.environ.get(variable)


def refused(watch: Watch) -> Iterator[NoReturn]:
    raise InvalidInput("a batch of no samples", "Give one at least.")


def broken(watch: Watch) -> Iterator[NoReturn]:
    raise ZeroDivisionError("a fault of ours")


def killed(question: Question, watch: Watch) -> Iterator[Reply]:
    """After a first answer."""
    yield from at_once(replace(question, planner="best"))
    os.kill(os.getpid(), signal.SIGKILL)


def killed_at_once(question: Question, watch: Watch) -> Iterator[Reply]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield from ()


def ended(watch: Watch) -> Iterator[str]:
    yield "first"
    os._exit(3)
