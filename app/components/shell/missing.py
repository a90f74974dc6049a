"""What a link names and nothing answers to: said calmly, with the way to what there is."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.components.shell.empty_state import empty_state
from app.components.shell.page_header import page_header
from app.formats import plain, sentence
from app.session.state import Page
from backend.errors import NotFound

ADVICE = "It may have been deleted, or its address is not whole."


@contextmanager
def missing(title: str, to: Page, label: str) -> Iterator[None]:
    """Draw that it is not there instead of raising `NotFound`; `label` links to page `to`."""
    try:
        yield
    except NotFound as error:
        page_header(title)
        empty_state(plain(sentence(str(error))), ADVICE, to, label)
