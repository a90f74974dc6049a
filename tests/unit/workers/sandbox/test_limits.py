"""The limits of a run, and the words for one that was reached."""

import psutil
import pytest

from backend.runs.run import RunError
from backend.settings import Settings
from workers.sandbox.limits import Limits

LIMITS = Limits(60, 2 * 1024**3, 64, 1024**2, 1024**3, 500)
MOST = ("seconds", "memory", "processes", "file", "disk", "files")


@pytest.mark.parametrize("name", MOST)
def test_each_limit_can_be_set(name: str):
    assert getattr(Limits.of(Settings(**{f"max_{name}": 77})), name) == 77


def test_without_a_number_a_run_leaves_a_fifth_of_the_memory():
    assert Limits.of(Settings()).memory == psutil.virtual_memory().total * 4 // 5


def test_the_kernel_is_told_what_it_can_hold_a_process_to():
    told = {"DATA": 2 * 1024**3, "FSIZE": 1024**2, "NPROC": 64, "CORE": 0}
    assert LIMITS.of_process(with_gpus=False, others=0) == told
    assert LIMITS.of_process(with_gpus=False, others=100) == told | {"NPROC": 164}
    del told["DATA"]
    assert LIMITS.of_process(with_gpus=True, others=0) == told


@pytest.mark.parametrize(
    ("message", "detail", "kind", "number"),
    [
        ("x.py, line 3: MemoryError", "", "OutOfMemory", "2.00 GiB"),
        ("x.py, line 3: RuntimeError: can't allocate memory: you", "", "OutOfMemory", "2.00 GiB"),
        ("Rank 0 gave up.", "Traceback\n  ...\nMemoryError\n", "OutOfMemory", "2.00 GiB"),
        ("x.py: RuntimeError: can't start new thread", "", "TooManyProcesses", "64 processes"),
        (
            "x.py: BlockingIOError: [Errno 11] Resource temporarily unavailable",
            "",
            "TooManyProcesses",
            "64 processes",
        ),
        ("OSError: [Errno 27] File too large", "", "FileTooLarge", "1.00 MiB"),
    ],
)
def test_an_error_that_a_limit_caused_names_it(message, detail, kind, number):
    error = LIMITS.explained(RunError("ModelRaised", message, "", detail))
    assert error.kind == kind
    assert error.message.startswith(message)
    assert number in error.message
    assert "STAGEFLOW_MAX_" in error.advice
    assert error.detail == detail


@pytest.mark.parametrize(
    "error",
    [
        RunError("ModelRaised", "x.py, line 3: ValueError: bad width", "Mend it.", "Trace"),
        RunError("ModelRaised", "x.py: OutOfMemoryError: CUDA out of memory.", "Mend it."),
        RunError("ModelRaised", "x.py: ValueError: bad", "", "# MemoryError?\nValueError: bad"),
    ],
)
def test_every_other_error_is_left_as_it_is(error: RunError):
    assert LIMITS.explained(error) is error
