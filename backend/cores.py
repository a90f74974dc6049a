"""The processor cores that this process may use."""

import os


def usable_cores() -> int:
    """Those of its affinity, which schedulers and containers set; where the system has none, all
    of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
