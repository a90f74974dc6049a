"""Profiles made on this machine without a server, by the profiler that a node's agent runs."""

import os
import subprocess
import sys
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.notebook.given_module import is_module, write_definition
from app.notebook.profiles import NotebookProfile
from app.notebook.progress import ProgressLine
from backend.codec import from_json, from_plain, to_json
from backend.definitions.zoo import zoo, zoo_file
from backend.errors import InvalidInput, StageflowError
from backend.profiles.profile import Profile
from backend.runs.events import Progress, RankError, read_line
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec

ROOT = Path(__file__).parents[2]
SHOWN = 20
"""Last lines of a profiler that failed without a word."""


class ProfilingFailed(StageflowError):
    """The profiler could not measure the model; the message is its own."""


def profile(
    model: Any,
    microbatch: int = 16,
    *,
    example: Any = None,
    loss: Any = None,
    layers: str = "",
    repetitions: int = 20,
    precision: str = "float32",
    peak: str = "",
    by_parts: bool = False,
    **parameters: bool | int | float | str,
) -> NotebookProfile:
    """Time and size every layer, in a process of its own, which runs the model's code unguarded.

    model      the path of a definition (a Python file, a config.json, a .pt2), the name of a model
               of the zoo, or a torch module
    example    of a module: (inputs, targets), any number of samples
    loss       of a module: of (output, target); cross entropy where there is none
    layers     "fine", "blocks" (a block is one layer), or "" for what suits
    peak       nothing is run: times of this device's roofline ("h100")
    parameters   of the definition

    Raises `ProfilingFailed` and `InvalidInput`.
    """
    spec: ProfileSpec = from_plain(
        ProfileSpec,
        {
            "definition_id": 0,
            "microbatch": microbatch,
            "repetitions": repetitions,
            "parameters": parameters,
            "granularity": layers,
            "precision": precision,
            "peak": peak,
            "by_parts": by_parts,
        },
    )
    with TemporaryDirectory(prefix="stageflow-") as folder:
        if is_module(model):
            name, path = type(model).__name__, write_definition(Path(folder), model, example, loss)
        else:
            path = _file(str(model))
            name = path.stem
        job = Job(0, 0, name, spec, str(path.absolute()), folder)
        return NotebookProfile(_profiled(job))


def _file(model: str) -> Path:
    if Path(model).is_file():
        return Path(model)
    if model in {entry.name for entry in zoo()}:
        return zoo_file(model)
    raise InvalidInput(
        f"there is no file {model[:200]!r}, and no model of that name in the zoo",
        "Give a path, a torch module, or one of: " + ", ".join(entry.name for entry in zoo()),
    )


def _profiled(job: Job) -> Profile:
    """What the profiler writes into the job's folder."""
    from app.server.launch import agent_command  # brings the database, which plans do without

    folder = Path(job.folder)
    file = folder / "job.json"
    file.write_bytes(to_json(Job, job))
    where = [str(ROOT), *filter(None, sys.path)]
    process = subprocess.Popen(
        agent_command("workers.profiler.main", str(file)),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(where)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    line, fault = ProgressLine(f"profile {job.name}"), None
    last: deque[str] = deque(maxlen=SHOWN)
    try:
        assert process.stdout is not None
        for text in process.stdout:
            match read_line(text.rstrip("\n")):
                case Progress() as told:
                    line(told.phase, told.done, told.total)
                case RankError() as told:
                    fault = ProfilingFailed(told.message, told.advice)
                case None:
                    last.append(text)
                case _:
                    pass
        code = process.wait()
    except BaseException:  # such as the kernel's interrupt
        process.kill()
        process.wait()
        raise
    result = folder / "profile.json"
    if fault is not None or code or not result.is_file():
        line.end("failed")
        raise fault or ProfilingFailed(f"the profiler ended with code {code}", "".join(last))
    found: Profile = from_json(Profile, result.read_bytes())
    line.end(f"{len(found.layers)} layers")
    return found
