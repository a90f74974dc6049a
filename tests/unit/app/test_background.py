"""What is computed in the background ends once nobody is there who wants it."""

import time
from collections.abc import Iterator

import pytest

from app.queries import background
from app.queries.background import Background, Visitor, under_way
from backend.prediction.watch import Watch

LEAVE = 0.05


class Somebody(Visitor):
    """Who is there until they go."""

    def __init__(self) -> None:
        super().__init__()
        self.stays = True

    @property
    def is_here(self) -> bool:
        return self.stays


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LEAVE", LEAVE)


def endless(watch: Watch) -> Iterator[int]:
    yield 1
    while not watch.stop():
        time.sleep(LEAVE / 10)


def test_it_ends_when_all_who_want_it_have_gone() -> None:
    one, other = Somebody(), Somebody()
    search = Background(endless)
    search.want(one)
    search.want(other)
    one.stays = False
    assert not search.wait(4 * LEAVE)
    other.stays = False
    assert search.wait(60)
    assert search.was_left
    assert search.items == [1]


def test_it_ends_when_the_session_is_forgotten() -> None:
    visitor, search = Somebody(), Background(endless)
    search.want(visitor)
    del visitor
    assert search.wait(60)
    assert search.was_left


def test_who_comes_back_soon_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LEAVE", 3600.0)
    visitor, search = Somebody(), Background(endless)
    search.want(visitor)
    visitor.stays = False
    assert not search.wait(4 * LEAVE)
    search.cancel()
    assert search.wait(60)
    assert not search.was_left


def test_what_nobody_asked_to_see_goes_on() -> None:
    search = Background(endless)
    assert not search.wait(4 * LEAVE)
    assert not search.was_left
    search.cancel()


def test_who_leaves_ends_it_unless_another_one_wants_it() -> None:
    one, other = Somebody(), Somebody()
    search = Background(endless)
    search.want(one)
    search.want(other)
    search.leave(one)
    assert not search.was_left
    assert search.is_running
    search.leave(other)
    assert search.wait(60)
    assert search.was_left
    assert not search.want(one)


def test_who_asks_while_a_server_goes_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background.runtime, "exists", lambda: True)
    visitor = Visitor()
    monkeypatch.setattr(visitor, "_session", "one that a server had")
    assert visitor.is_here


class Kept:
    """As Streamlit keeps what a function made."""

    def __init__(self) -> None:
        self.made: dict[int, Background[int]] = {}

    def __call__(self, number: int) -> Background[int]:
        return self.made.setdefault(number, Background(endless))

    def clear(self, number: int) -> None:
        del self.made[number]


def test_what_was_left_is_computed_anew_for_the_next_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, visitor = Kept(), Somebody()
    monkeypatch.setattr(background, "this_visitor", lambda: visitor)
    search = under_way(kept, 7)
    assert under_way(kept, 7) is search
    visitor.stays = False
    assert search.wait(60)
    again = under_way(kept, 7)
    assert again is not search
    assert again.is_running
    again.cancel()


def test_who_asks_for_what_is_being_left_gets_one_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two looks at whether a search is to end, it is neither going on nor ended."""
    kept, visitors = Kept(), [Somebody(), Somebody()]
    monkeypatch.setattr(background, "this_visitor", lambda: visitors[0])
    search = under_way(kept, 7)
    search.leave(visitors.pop(0))
    again = under_way(kept, 7)
    assert again is not search
    assert not again.was_left
    again.cancel()
