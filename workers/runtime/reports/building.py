"""A limit on making and tracing a model: that runs a person's code, which may never end."""

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from backend.errors import StageflowError
from backend.runs.events import Progress
from backend.runs.job import Job
from workers.runtime.failures import failed
from workers.runtime.reports.reporter import Reporter

NOTICE = 60.0
"""Most seconds between two notices of where it is; there is one before the end in any case."""
FRAMES = 12
"""The innermost ones, of which a notice tells."""
PLACE = 150  # characters


class BuildTookTooLong(StageflowError):
    """Making and tracing the model took longer than the node lets it; `detail` is the stack."""

    def __init__(self, limit: float, detail: str) -> None:
        advice = "Look for a loop that never ends, or set a longer STAGEFLOW_BUILD on the node."
        super().__init__(f"making and tracing the model took longer than {limit:g} s", advice)
        self.detail = detail


@contextmanager
def building(reporter: Reporter, job: Job) -> Iterator[None]:
    """What is done inside, in this thread, makes or traces the model, as far as the reporter's
    `started`. Every minute, and after half of a limit below two, a notice says where it is; after
    `job.build_seconds` the process tells a failure with the stack, and ends."""
    over = threading.Event()
    asked = reporter, job.build_seconds, threading.get_ident(), over
    threading.Thread(target=_watch, args=asked, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _watch(reporter: Reporter, limit: float, thread: int, over: threading.Event) -> None:
    spent = 0.0
    every = min(NOTICE, limit / 2)
    while not over.wait(pause := min(every, limit - spent)):
        if reporter.has_started.is_set():
            return
        spent += pause
        stack = traceback.extract_stack(sys._current_frames()[thread])[-FRAMES:]
        text = "".join(traceback.format_list(stack))
        if spent >= limit:
            reporter(failed(reporter.rank, BuildTookTooLong(limit, text)))
            over.set()
            os._exit(1)
        where = f"{os.path.basename(stack[-1].filename)}, line {stack[-1].lineno}"
        said = f"building the model for {spent:.0f} of {limit:.0f} s, at {where}"
        reporter(Progress(said[:PLACE], 0, 1))
        reporter.log(f"Still {said}. The stack, innermost call last:\n{text}")
