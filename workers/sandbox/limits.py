"""What one run may use on this node, and the words for a run that used it up."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import psutil

from backend.runs.run import RunError
from backend.settings import Settings

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
    for all ranks together, `file` for each file."""

    seconds: float
    memory: int
    processes: int
    file: int
    disk: int
    files: int

    @staticmethod
    def of(settings: Settings) -> "Limits":
        """Where no memory is given: four fifths of the machine's."""
        return Limits(
            seconds=settings.max_seconds,
            memory=settings.max_memory or psutil.virtual_memory().total * 4 // 5,
            processes=settings.max_processes,
            file=settings.max_file,
            disk=settings.max_disk,
            files=settings.max_files,
        )

    def of_process(self, with_gpus: bool, others: int) -> Mapping[str, int]:
        """What the kernel holds each process to, by the names of `resource`. CUDA reserves
        more address space than it uses, so that memory is only watched there. `others` are
        the processes that count too, because the user has them already."""
        data = {} if with_gpus else {"DATA": self.memory}
        return data | {"FSIZE": self.file, "NPROC": self.processes + others, "CORE": 0}

    def out_of_time(self, seconds: float) -> RunError:
        return _breach(
            "OutOfTime",
            f"the run was ended after {seconds:,.0f} s; it may take {self.seconds:,.0f} s",
            "Where nothing was printed, look for an endless loop in the definition. Ask for less",
            "SECONDS",
        )

    def out_of_memory(self, found: str) -> RunError:
        return _breach(
            "OutOfMemory",
            f"{found}; the run may use {size(self.memory)} of memory",
            "Use smaller microbatches or more stages",
            "MEMORY",
        )

    def too_many_processes(self, found: str) -> RunError:
        return _breach(
            "TooManyProcesses",
            f"{found}; the run may have {self.processes:,} processes and threads",
            "Start fewer of them in the definition",
            "PROCESSES",
        )

    def file_too_large(self, found: str) -> RunError:
        return _breach(
            "FileTooLarge",
            f"{found}; a file of a run may have {size(self.file)}",
            "Write less",
            "FILE",
        )

    def too_much_disk(self, used: int) -> RunError:
        return _breach(
            "DiskFull",
            f"the run has written {size(used)}; it may keep {size(self.disk)}",
            "Write less",
            "DISK",
        )

    def too_many_files(self, count: int) -> RunError:
        return _breach(
            "TooManyFiles",
            f"the run has more than {count:,} files; it may keep {self.files:,}",
            "Write fewer files",
            "FILES",
        )

    def explained(self, error: RunError) -> RunError:
        """The error that a rank told, with the limit's name and number where one caused it."""
        ending = error.detail.strip().rpartition("\n")[2]
        text = f"{error.kind} {error.message} {ending}".lower()
        causes = (
            (() if "cuda" in text else MEMORY_WORDS, self.out_of_memory),
            (PROCESS_WORDS, self.too_many_processes),
            (FILE_WORDS, self.file_too_large),
        )
        for words, breach in causes:
            if any(word in text for word in words):
                return replace(breach(error.message), detail=error.detail)
        return error


def _breach(kind: str, message: str, remedy: str, variable: str) -> RunError:
    """`remedy` is what the owner of the definition can do, `variable` what the node's can."""
    setting = f"STAGEFLOW_MAX_{variable} where the node agent is started"
    return RunError(kind, message, f"{remedy}, or raise {setting}.")


def size(num_bytes: float) -> str:
    """Bytes for eyes: "1.5 GiB"."""
    for unit in ("B", "KiB", "MiB"):
        if num_bytes < 1024:
            return f"{num_bytes:,.4g} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:,.4g} GiB"
