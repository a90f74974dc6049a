"""What one run may use of this node, and the words for a run that used it up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from backend.runs.run import RunError
from backend.settings import Settings
from backend.units import bytes_text
from workers.allocation import memory

MEMORY_WORDS = (
    "outofmemory",
    "memoryerror",
    "bad_alloc",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
)
PROCESS_WORDS = ("can't start new thread", "resource temporarily unavailable")
FILE_WORDS = ("file too large",)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes; `memory`, `processes` (threads count too), `disk` and `files` hold
    for all ranks together, `file` for each file. Of the `seconds` earlier attempts at the run have
    `spent` some."""

    seconds: float
    memory: int
    processes: int
    file: int
    disk: int
    files: int
    spent: float = 0.0

    @staticmethod
    def of(settings: Settings, share: float = 1.0) -> "Limits":
        """Memory and disk of a run that has this share of the node's devices. Where no memory is
        given: of four fifths of what the agent may use."""
        return Limits(
            seconds=settings.max_seconds,
            memory=int((settings.max_memory or memory() * 4 // 5) * share),
            processes=settings.max_processes,
            file=settings.max_file,
            disk=int(settings.max_disk * share),
            files=settings.max_files,
        )

    def of_process(self, with_gpus: bool, others: int) -> Mapping[str, int]:
        """What the kernel holds each process to, by the names of `resource`. CUDA reserves
        more address space than it uses, so that memory is only watched there. `others` are
        the processes that count too, because the user has them already."""
        data = {} if with_gpus else {"DATA": self.memory}
        return data | {"FSIZE": self.file, "NPROC": self.processes + others, "CORE": 0}

    def breach(self, kind: str, found: str) -> RunError:
        """The error of a run that has exceeded the limit of this `kind`, as `found` says."""
        allowed, remedy, variable = BREACHES[kind]
        setting = f"STAGEFLOW_MAX_{variable} where the node agent is started"
        return RunError(kind, f"{found}; {allowed(self)}", f"{remedy}, or raise {setting}.")

    def explained(self, error: RunError) -> RunError:
        """The error that a rank told, with the limit's name and number where one caused it."""
        ending = error.detail.strip().rpartition("\n")[2]
        text = f"{error.kind} {error.message} {ending}".lower()
        causes = (
            (() if "cuda" in text else MEMORY_WORDS, "OutOfMemory"),
            (PROCESS_WORDS, "TooManyProcesses"),
            (FILE_WORDS, "FileTooLarge"),
        )
        for words, kind in causes:
            if any(word in text for word in words):
                return replace(self.breach(kind, error.message), detail=error.detail)
        return error


BREACHES: dict[str, tuple[Callable[[Limits], str], str, str]] = {
    "OutOfTime": (
        lambda most: f"it may take {most.seconds:,.0f} s",
        "Where nothing was printed, look for an endless loop in the definition. Ask for less",
        "SECONDS",
    ),
    "OutOfMemory": (
        lambda most: f"the run may use {bytes_text(most.memory)} of memory",
        "Use smaller microbatches or more stages",
        "MEMORY",
    ),
    "TooManyProcesses": (
        lambda most: f"the run may have {most.processes:,} processes and threads",
        "Start fewer of them in the definition",
        "PROCESSES",
    ),
    "FileTooLarge": (
        lambda most: f"a file of a run may have {bytes_text(most.file)}",
        "Write less",
        "FILE",
    ),
    "DiskFull": (lambda most: f"it may keep {bytes_text(most.disk)}", "Write less", "DISK"),
    "TooManyFiles": (lambda most: f"it may keep {most.files:,}", "Write fewer files", "FILES"),
}
"""What a run may use, what the owner of its definition can do, and the setting of the node."""
