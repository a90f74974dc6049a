"""Walks one rank's program: every action in its order, each with its span."""

from collections.abc import Callable, Sequence

from backend.pipeline.actions import Action
from workers.runtime.messages.queue import MessageQueue
from workers.runtime.reports.recorder import Recorder


def execute(
    actions: Sequence[Action],
    perform: Callable[[int, Action], None],
    messages: MessageQueue,
    recorder: Recorder,
) -> None:
    """Perform a segment. What the actions mean is `perform`'s business (training, evaluation);
    a receive waits and a send does not, as `backend.pipeline.clock.waits` has it."""
    messages.begin(actions)
    for index, action in enumerate(actions):
        start = recorder.mark()
        perform(index, action)
        recorder.add(index, action, start, recorder.mark())
    messages.end()
