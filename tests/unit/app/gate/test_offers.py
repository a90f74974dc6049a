"""Files go to whom a page has offered them."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from app.api.problems import Refused
from app.gate.offers import Offers

people = st.sampled_from(["Ada", "Bob", "Eve"])
files = st.sampled_from([f"{number:056x}" for number in range(5)])


def offer(offers: Offers, person: str, *names: str) -> None:
    """As a page does: by a message among whose bytes the addresses are."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    told = b"\x12\x07".join(f"\x00/media/{name}.csv\x08".encode() for name in names)
    message = {"type": "websocket.send", "bytes": told}
    asyncio.run(offers.heard(send, person)(message))
    assert sent == [message]


def may(offers: Offers, person: str, path: str) -> bool:
    with suppress(Refused):
        offers.check(person, path)
        return True
    return False


@given(st.lists(st.tuples(people, files)), people, files)
def test_a_file_is_for_those_to_whom_it_was_offered(
    made: list[tuple[str, str]], person: str, file: str
) -> None:
    offers = Offers()
    for each, name in made:
        offer(offers, each, name)
    for path in (f"/media/{file}", f"/media/{file}.csv"):
        assert may(offers, person, path) == ((person, file) in made)


def test_several_may_be_in_one_message_and_other_messages_pass() -> None:
    offers = Offers()
    one, two = "1" * 56, "2" * 56
    offer(offers, "Ada", one, two)
    assert may(offers, "Ada", f"/media/{one}.png")
    assert may(offers, "Ada", f"/media/{two}")
    offer(offers, "Eve")
    asyncio.run(offers.heard(_nowhere, "Eve")({"type": "websocket.close", "code": 1000}))
    assert not may(offers, "Eve", f"/media/{one}.png")


async def _nowhere(_message: Message) -> None:
    return


@pytest.mark.parametrize("path", ["/media/", "/media/x", "/media/../runs", "/media/" + "1" * 500])
def test_what_is_no_address_of_a_file_is_refused(path: str) -> None:
    with pytest.raises(Refused, match="no such file") as caught:
        Offers().check("Ada", path)
    assert caught.value.status == 404


def test_other_paths_are_not_its_business() -> None:
    assert may(Offers(), "Ada", "/runs")


def test_the_oldest_offers_are_forgotten() -> None:
    offers = Offers(most=2)
    one, two, three = (digit * 56 for digit in "123")
    offer(offers, "Ada", one, two)
    offer(offers, "Ada", one)
    offer(offers, "Ada", three)
    assert [may(offers, "Ada", f"/media/{name}") for name in (one, two, three)] == [
        True,
        False,
        True,
    ]
