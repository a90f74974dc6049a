"""A process that ends quickly still does what it registered, and frees nothing at its end."""

import subprocess
import sys

CODE = """
import atexit, gc
from backend.ending import end_quickly
atexit.register(lambda: print("handled", gc.get_freeze_count() > 1000))
end_quickly()
kept = [[] for _ in range(2000)]
"""


def test_what_lives_is_frozen_before_other_handlers_at_exit_that_still_run() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "handled True\n"
