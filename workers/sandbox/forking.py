"""Imports a program once and forks its ranks: `python -m workers.sandbox.forking MODULE WORDS...`.

Where the module has a `before_fork`, that is given the words first: it may import what the ranks
will import later. The launcher starts it, with its order on standard input. It ends as soon as all
are forked: they are the launcher's children then, as if that had started them.
"""

import gc
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from backend.ending import keep_imports

TASKS, NAME = Path("/proc/self/task"), Path("/proc/self/comm")
PREPARED = frozenset({"jemalloc_bg_thd"})
"""Threads whose library prepares itself for forks: jemalloc's, which pyarrow loads."""
MOMENT = 0.001
"""Seconds between looks whether the launcher is the parent."""


def main() -> NoReturn:
    """Each rank goes on in `MODULE.main`. Raises what the import raises, and `OSError`."""
    module, *words = sys.argv[1:]
    order: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    gc.disable()
    program = import_module(module)
    if prepare := getattr(program, "before_fork", None):
        prepare(words)
    keep_imports()  # no rank copies their pages by looking through them
    forker, pids = os.getpid(), []
    is_alone = not _threads() - PREPARED
    for rank in order["ranks"]:
        if not (pid := os.fork()):
            _become(rank, order)
            while os.getppid() == forker:
                time.sleep(MOMENT)
            if not is_alone:  # a thread that a library has begun is missing in a fork
                os.execv(sys.executable, [sys.executable, "-u", "-m", module, *words])
            sys.argv = [str(program.__file__), *words]
            sys.exit(program.main())
        pids.append(pid)
    os.write(order["pids"], " ".join(map(str, pids)).encode())
    os._exit(0)


def _threads() -> set[str]:
    """The names of those beside the main one."""
    own = str(os.getpid())
    others = (task for task in TASKS.iterdir() if task.name != own)
    return {(task / "comm").read_text().strip() for task in others}


def _become(rank: dict[str, Any], order: dict[str, Any]) -> None:
    """What a process of its own has: session, variables, pipes, random numbers."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, number in ((null, 0), (rank["out"], 1), (rank["err"], 2)):
        os.dup2(source, number)
    others = {other[name] for other in order["ranks"] for name in ("out", "err", "events")}
    for end in {null, order["pids"], *others} - {rank["events"]}:
        os.close(end)
    os.environ.clear()
    os.environ.update(rank["environment"])
    NAME.write_text(f"rank {os.environ['RANK']}")  # all have one command line
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


if __name__ == "__main__":
    main()
