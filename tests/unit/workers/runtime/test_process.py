"""How a process of a run begins; docs/evidence/prediction.md says what kept memory saves."""

import subprocess
import sys

import pytest

ASK = "from workers.runtime.process import keep_freed_memory; print(keep_freed_memory())"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
def test_freed_memory_is_kept() -> None:
    """In a process of its own: it cannot be undone."""
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


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
