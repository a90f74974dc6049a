"""A crowd's pages refresh themselves less often, and those of a machine at work; whoever left
counts no more."""

import asyncio
import os
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from prometheus_client import generate_latest
from starlette.types import Message, Receive, Scope, Send

from app.server.measures import registry
from app.server.sessions import AT_EASE, FULL, Sessions, refresh_interval


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does nothing else, whatever runs beside these tests."""
    work(monkeypatch, 0.0)


def work(monkeypatch: pytest.MonkeyPatch, waiting: float) -> None:
    """As many processes ask for each of two cores."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (2 * waiting, 0.0, 0.0))


class Page:
    """What is behind the middleware: stays until it is told to leave."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.leave, self.fault = asyncio.Event(), fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.leave.wait()
        if self.fault:
            raise self.fault


async def _nothing(message: Message | None = None) -> Message:
    return {}


@asynccontextmanager
async def opened(kind: str = "websocket", fault: Exception | None = None):
    page = Page(fault)
    visit = asyncio.create_task(Sessions(page)({"type": kind}, _nothing, _nothing))
    await asyncio.sleep(0)
    yield
    page.leave.set()
    await asyncio.wait([visit])


async def crowd(number: int, kind: str = "websocket") -> tuple[float, float]:
    async with AsyncExitStack() as pages:
        for _ in range(number):
            await pages.enter_async_context(opened(kind, OSError("gone")))
        return refresh_interval(2.0), told()


def told() -> float:
    lines = generate_latest(registry).decode().splitlines()
    (line,) = (line for line in lines if line.startswith("stageflow_open_pages "))
    return float(line.split()[1])


@pytest.mark.parametrize(("number", "seconds"), [(1, 2.0), (AT_EASE, 2.0), (4 * AT_EASE, 8.0)])
def test_the_more_pages_are_open_the_longer_each_waits(number: int, seconds: float) -> None:
    assert asyncio.run(crowd(number)) == (pytest.approx(seconds), number)
    assert (refresh_interval(2.0), told()) == (2.0, 0)


def test_what_is_no_page_is_not_counted() -> None:
    assert asyncio.run(crowd(3 * AT_EASE, "http")) == (2.0, 0)


@pytest.mark.parametrize(("waiting", "seconds"), [(FULL / 2, 2.0), (FULL, 2.0), (3 * FULL, 6.0)])
def test_pages_of_a_machine_at_work_wait_longer(
    monkeypatch: pytest.MonkeyPatch, waiting: float, seconds: float
) -> None:
    work(monkeypatch, waiting)
    assert refresh_interval(2.0) == pytest.approx(seconds)
