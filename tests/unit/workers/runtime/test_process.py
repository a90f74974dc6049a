"""The allocator keeps freed memory; docs/evidence/prediction.md says how much that saves."""

import subprocess
import sys

import pytest

ASK = "from workers.runtime.process import keep_freed_memory; print(keep_freed_memory())"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc")
def test_freed_memory_is_kept() -> None:
    """In a process of its own: it cannot be undone."""
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
