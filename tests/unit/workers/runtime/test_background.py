"""Items are done in their order beside the caller, who hears of the first that failed."""

import threading
from itertools import count

import pytest

from workers.runtime.background import BackgroundWorker


def test_join_waits_for_all_in_their_order() -> None:
    done: list[int] = []
    work = BackgroundWorker(done.append)
    for number in range(50):
        work.put(number)
    work.join()
    assert done == list(range(50))


def test_the_first_error_is_raised_by_whoever_comes_next_and_the_others_are_done() -> None:
    done: list[int] = []

    def halved(number: int) -> None:
        done.append(10 // number)

    work = BackgroundWorker(halved)
    for number in (2, 0, 5):
        work._items.put(number)
    with pytest.raises(ZeroDivisionError):
        work.join()
    with pytest.raises(ZeroDivisionError):
        work.put(1)
    assert done == [5, 2]


def test_put_waits_while_as_many_wait_as_may() -> None:
    going, put = threading.Event(), count()
    work = BackgroundWorker(lambda _: going.wait(30), most=1)

    def fill() -> None:
        for number in range(4):
            work.put(number)
            next(put)

    other = threading.Thread(target=fill)
    other.start()
    other.join(0.3)
    assert other.is_alive()
    assert repr(put) in ("count(1)", "count(2)")
    going.set()
    other.join(30)
    work.join()
    assert repr(put) == "count(4)"
