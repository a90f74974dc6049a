"""A process that ends quickly still does what it registered, and frees nothing at its end."""

import gc
import subprocess
import sys

from backend.ending import seldom_collect

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


def test_few_new_objects_are_no_reason_to_look_through_all() -> None:
    before = gc.get_threshold()
    try:
        seldom_collect()
        gc.collect()
        kept = [[] for _ in range(200_000)]
        assert gc.get_count()[0] >= len(kept)
    finally:
        gc.set_threshold(*before)
