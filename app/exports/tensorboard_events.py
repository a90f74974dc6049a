"""A run's metrics as a file of events, for `tensorboard --logdir`."""

from backend.bootstrap import Backend
from backend.runs.run import Run
from backend.trackers.tensorboard import event_file


def tensorboard_events(backend: Backend, run: Run) -> bytes:
    """Raises `TrackerNotInstalled` where the package `tensorboard` is missing."""
    return event_file(backend.following.told(run))
