"""Pages are drawn a few at a time, and none waits for ever."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from app.server import page_slots
from app.server.page_slots import AT_ONCE, page_slot


@contextmanager
def busy() -> Iterator[None]:
    """As many pages are in the middle of their drawing as may be."""
    there, done = threading.Barrier(AT_ONCE + 1), threading.Event()

    def draw() -> None:
        with page_slot():
            there.wait(60)
            done.wait(60)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(AT_ONCE):
            pool.submit(draw)
        there.wait(60)
        try:
            yield
        finally:
            done.set()


def test_no_more_than_a_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_slots, "PATIENCE", 60.0)
    lock, drawing, seen = threading.Lock(), set[int](), list[int]()

    def draw(number: int) -> None:
        with page_slot(), page_slot():  # a page, and a part of it
            with lock:
                drawing.add(number)
                seen.append(len(drawing))
            threading.Event().wait(0.01)
            with lock:
                drawing.discard(number)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(draw, range(24)))
    assert len(seen) == 24
    assert max(seen) <= AT_ONCE


def test_who_has_waited_long_goes_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_slots, "PATIENCE", 0.05)
    with busy():
        went = []
        with page_slot():
            went.append(True)
        assert went
    with busy():  # what was given back is as much as was taken
        assert not page_slots._slots.acquire(blocking=False)


def test_a_page_that_fails_gives_its_turn_back() -> None:
    for _ in range(2 * AT_ONCE):
        with pytest.raises(OSError, match="gone"), page_slot():
            raise OSError("gone")
    with busy():
        pass
