"""How a process of a run begins; docs/evidence/prediction.md says what kept memory saves."""

import faulthandler
import os
import signal
import subprocess
import sys

import pytest

from workers.runtime.process import tell_stacks

ASK = "from workers.runtime.process import keep_freed_memory; print(keep_freed_memory())"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
def test_freed_memory_is_kept() -> None:
    """In a process of its own: it cannot be undone."""
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_a_signal_writes_the_stack(capfd: pytest.CaptureFixture[str]) -> None:
    tell_stacks()
    try:
        os.kill(os.getpid(), signal.SIGUSR2)
    finally:
        faulthandler.unregister(signal.SIGUSR2)
    assert "in test_a_signal_writes_the_stack" in capfd.readouterr().err


IMPORTED = """
import sys
import workers.runtime.main
heavy = {"torch._dynamo", "sympy", "transformers", "sqlalchemy", "torch.distributed.tensor"}
print(sorted(heavy & set(sys.modules)))
"""


def test_a_rank_starts_without_what_few_models_need() -> None:
    """Each of these takes half a second or more, on every rank."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
