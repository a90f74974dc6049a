"""Real processes, a rank each, that run jobs."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from backend.runs.events import Metrics, read_line
from tests.forked import Forked
from tests.ports import free_port

CASES = "tests.contract.train_cases"
"""Trains job after job in the same processes."""


def launch(jobs: list[Path], size: int, program: str = CASES) -> Iterator[str]:
    """Let `program` run the jobs on `size` ranks; the lines of all of them."""
    port = free_port()
    world = {**os.environ, "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1"}
    world["MASTER_PORT"] = str(port)
    ranks = [
        Forked(program, *map(str, jobs), env=world | {"RANK": str(rank)}) for rank in range(size)
    ]
    codes = [rank.wait(600) for rank in ranks]
    texts = [rank.out.read_text() for rank in ranks]
    told = [text[-3000:] + rank.err.read_text() for text, rank in zip(texts, ranks, strict=True)]
    assert codes == [0] * size, told
    return (line for text in texts for line in text.splitlines())


def losses_by_case(lines: Iterable[str], name: str = "loss") -> dict[str, list[float]]:
    """The loss of every update by the name of its job, or the values of another metric."""
    found: dict[str, list[float]] = {}
    case = ""
    for line in lines:
        event = read_line(line)
        if line.startswith("case "):
            case = line.removeprefix("case ")
        elif isinstance(event, Metrics) and event.name == name:
            found.setdefault(case, []).extend(event.values)
    return found
