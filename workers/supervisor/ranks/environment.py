"""The environment of a rank: what it needs and nothing else, so no credentials."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from workers.sandbox.bubblewrap import PROJECT
from workers.supervisor.ranks.place import Place

PASSED_ON = frozenset({"PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME"})
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
PASSED_ON_PREFIXES = ("GLOO_", "NCCL_")
LOOPBACK = "lo"
"""The only interface of a sandbox that has a network of its own."""


def rank_environment(
    index: int,
    place: Place,
    world_size: int,
    home: Path,
    gpus: Sequence[str] = (),
    wrapped: bool = False,
) -> dict[str, str]:
    """The variables of rank number `index` of this host, as torchrun names them; it sees the
    GPU of its device alone, of the host's `gpus` by their UUIDs.

    `home` is the attempt's work folder: whatever a library caches stays with the run, and
    the value marks every process of the attempt (see `processes.of_attempt`). `wrapped` in
    bubblewrap /tmp is private, and on a single host the network is the rank's own.
    """
    own = LOOPBACK if wrapped and place.hosts == 1 else place.interface
    return {
        **inherited(os.environ),
        **dict.fromkeys(INTERFACES if own else (), own),
        **({} if wrapped else {"TMPDIR": str(home)}),
        "HOME": str(home),
        "PYTHONPATH": str(PROJECT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "RANK": str(place.ranks[index]),
        "LOCAL_RANK": str(index),
        "WORLD_SIZE": str(world_size),
        "GROUP_RANK": str(place.host),
        "GROUP_WORLD_SIZE": str(place.hosts),
        "MASTER_ADDR": place.address,
        "MASTER_PORT": str(place.port),
        "CUDA_VISIBLE_DEVICES": gpus[place.devices[index]] if gpus else "",
    }


def inherited(outer: Mapping[str, str]) -> dict[str, str]:
    """What a rank may see of the agent's own variables."""
    return {
        name: value
        for name, value in outer.items()
        if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }
