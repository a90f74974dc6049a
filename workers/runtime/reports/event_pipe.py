"""Where a process of a run tells its events: a pipe of its own, by hand standard output."""

import os
import sys

from backend.runs.events import EVENT_PIPE, Event, write_line


def event_pipe() -> int | None:
    """The pipe that the launcher gave this process, for which no child will find it: neither what
    is executed nor what is forked. None for a process that was started by hand."""
    given = os.environ.pop(EVENT_PIPE, None)
    if given is None:
        return None
    pipe = int(given)
    os.set_inheritable(pipe, False)
    nowhere = os.open(os.devnull, os.O_WRONLY)  # a closed number would be given to another file
    os.register_at_fork(after_in_child=lambda: os.dup2(nowhere, pipe, inheritable=False))
    return pipe


def tell(pipe: int | None, event: Event) -> None:
    """Write the event as a line; by one thread at a time."""
    line = write_line(event) + "\n"
    if pipe is None:
        sys.stdout.write(line)
        sys.stdout.flush()
        return
    data = line.encode(errors="replace")
    while data:
        data = data[os.write(pipe, data) :]
