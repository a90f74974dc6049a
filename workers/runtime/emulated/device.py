"""A device that computes nothing and takes the time of computing."""

import time


class EmulatedDevice:
    """`scale`: seconds that pass here for each second of the device that it stands for.

    The layers of an action follow each other without a gap, as on a device whose queue the host
    fills ahead: what Python does between two of them is part of the wait.
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._until, self._late = time.monotonic(), 0.0

    def begin(self) -> None:
        """An action begins: what it waited for has come.

        A machine with more ranks than cores wakes them late; what the last wait was too long, this
        action is shorter, because the device would not have waited for a core of this machine.
        """
        now = time.monotonic()
        self._late = min(self._late, max(0.0, now - self._until))
        self._until = now - self._late

    def busy(self, seconds: float) -> None:
        """Be busy for so many of the device's seconds from the end of what the action did before;
        no longer than Python takes, where that is longer."""
        self._until += seconds * self._scale
        wait = self._until - time.monotonic()
        if wait > 0:
            time.sleep(wait)
            self._late = time.monotonic() - self._until
