"""The processor cores that this process may use."""

import os

MUCH = 0.05
"""Of the time in which a process could compute: what others took of it is said from here on. Less
is what the system itself takes, and what separates two runs on a quiet machine."""


def usable_cores() -> int:
    """Those of its affinity, which schedulers and containers set; where the system has none, all
    of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
