"""The environment of a rank: what it needs and nothing else, so no credentials."""

import os
from collections.abc import Mapping
from pathlib import Path

from workers.sandbox.bubblewrap import PROJECT

PASSED_ON = frozenset({"PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME"})
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
PASSED_ON_PREFIXES = ("GLOO_", "NCCL_")
LOOPBACK = "lo"
"""The only interface of a sandbox that has a network of its own."""


def rank_environment(
    rank: int,
    world_size: int,
    port: int,
    home: Path,
    num_gpus: int = 0,
    own_network: bool = False,
) -> dict[str, str]:
    """The variables of one rank, as torchrun names them; rank r sees GPU r alone.

    `home` is the attempt's work folder: whatever a library caches stays with the run, and
    the value marks every process of the attempt (see `processes.of_attempt`). In a sandbox
    with a network of its own the agent's interfaces do not exist, and /tmp is private.
    """
    return {
        **inherited(os.environ),
        **(dict.fromkeys(INTERFACES, LOOPBACK) if own_network else {"TMPDIR": str(home)}),
        "HOME": str(home),
        "PYTHONPATH": str(PROJECT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "CUDA_VISIBLE_DEVICES": str(rank) if rank < num_gpus else "",
    }


def inherited(outer: Mapping[str, str]) -> dict[str, str]:
    """What a rank may see of the agent's own variables."""
    return {
        name: value
        for name, value in outer.items()
        if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }
