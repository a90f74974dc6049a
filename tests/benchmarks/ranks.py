"""Starts the processes of a benchmark on a network and collects what rank 0 found."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from tests.benchmarks.networks import Network

LOCAL = Network("loopback", ((),) * 16, "127.0.0.1", "lo")


def launch(
    file: str, arguments: Sequence[str], size: int, port: int, where: Network = LOCAL
) -> Any:
    """Run `file` on `size` ranks; the JSON of rank 0's last line."""
    ranks = []
    for rank in range(size):
        command = [*where.prefix[rank], sys.executable, file, *arguments]
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(size)}
        environment |= {"MASTER_ADDR": where.address, "MASTER_PORT": str(port)}
        environment |= {"GLOO_SOCKET_IFNAME": where.interface, "OMP_NUM_THREADS": "1"}
        ranks.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    texts = [process.communicate()[0] for process in ranks]
    if any(process.returncode for process in ranks):
        raise SystemExit(f"a rank failed: {[process.returncode for process in ranks]}")
    return json.loads(texts[0].splitlines()[-1])


def end(found: Any = None) -> NoReturn:
    """The end of a rank: say what was found, if anything, and be gone at once.

    DistributedDataParallel's reducer may hold the last reference to the process group. It
    destroys it with the interpreter's lock held and joins gloo's threads, and one of them may
    wait for that lock to let go of a tensor: two of six launches never ended (torch 2.13).
    """
    if found is not None:
        print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)
