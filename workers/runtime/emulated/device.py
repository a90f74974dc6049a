"""A device that computes nothing and takes the time of computing."""

import time


class EmulatedDevice:
    """`scale`: seconds that pass here for each second of the device that it stands for."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._late = 0.0

    def busy(self, seconds: float) -> None:
        """Be busy for so many of the device's seconds.

        A machine with more ranks than cores wakes them late; what one wait is too long, the
        next is shorter, because the device would not have waited for a core of this machine.
        """
        wait = seconds * self._scale - self._late
        if wait <= 0:
            self._late = -wait
            return
        end = time.monotonic() + wait
        time.sleep(wait)
        self._late = time.monotonic() - end
