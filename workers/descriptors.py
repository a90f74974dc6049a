"""How many more files this process may open."""

import os
import resource

FOR_A_RUN = 64
"""What an agent needs to carry one: pipes of its ranks, its spool, connections."""


def left() -> int:
    """Without the one that looking takes; 0 where nothing can be opened to look."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        return most - len(os.listdir("/dev/fd"))
    except OSError:
        return 0
