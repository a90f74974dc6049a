"""Real processes, a rank each, that run jobs."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from backend.runs.events import Metrics, read_line

HERE = Path(__file__).parent


CASES = (str(HERE / "train_cases.py"),)
"""Trains job after job in the same processes."""


def launch(jobs: list[Path], size: int, program: tuple[str, ...] = CASES) -> Iterator[str]:
    """Let `program` run the jobs on `size` ranks; the lines of all of them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(size):
        world = {"RANK": str(rank), "WORLD_SIZE": str(size)}
        world |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        command = [sys.executable, *program, *map(str, jobs)]
        log = (jobs[0].parent.parent / f"log-{size}-{rank}").open("w+")
        environment = {**os.environ, **world, "PYTHONPATH": str(HERE.parents[1])}
        ranks.append((subprocess.Popen(command, stdout=log, env=environment), log))
    codes = [process.wait(timeout=600) for process, _ in ranks]
    texts = []
    for _, log in ranks:
        log.seek(0)
        texts.append(log.read())
        log.close()
    assert codes == [0] * size, [text[-3000:] for text in texts]
    return (line for text in texts for line in text.splitlines())


def losses_by_case(lines: Iterable[str]) -> dict[str, list[float]]:
    """The loss of every update by the name of its job."""
    found: dict[str, list[float]] = {}
    case = ""
    for line in lines:
        event = read_line(line)
        if line.startswith("case "):
            case = line.removeprefix("case ")
        elif isinstance(event, Metrics) and event.name == "loss":
            found.setdefault(case, []).extend(event.values)
    return found
