"""The flag by which an agent is stopped: for threads, and for signal handlers."""

import subprocess
import sys
import threading

from workers.stop import Flag, Stop

INTERRUPTED = """
import random, signal, time
from workers.stop import Flag
flag, told = Flag(), 0
def handler(*_):
    global told
    told += 1
    flag.set()
signal.signal(signal.SIGALRM, handler)
end = time.monotonic() + 2
while time.monotonic() < end:
    flag = Flag()
    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 3e-5))
    flag.wait(1e-5)
    flag.set()
assert told > 100, told
"""


def test_all_who_wait_are_told() -> None:
    flag, seen = Flag(), []
    threads = [threading.Thread(target=lambda: seen.append(flag.wait(60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    flag.set()
    for thread in threads:
        thread.join(60)
    assert seen == [True] * 3
    assert flag.is_set()
    assert flag.wait()


def test_who_waits_in_vain_is_told_so() -> None:
    flag = Flag()
    assert not flag.wait(0.01)
    assert not flag.is_set()


def test_a_signal_handler_sets_it_whatever_it_interrupts() -> None:
    """With an event of `threading`, this does not end."""
    subprocess.run([sys.executable, "-c", INTERRUPTED], check=True, timeout=240)


def test_a_warning_is_no_end() -> None:
    stop = Stop()
    stop.warn(60)
    stop.wait(0.01)
    assert stop.is_near
    assert not stop.is_set()
    stop.set()
    stop.wait()
    assert stop.is_set()
