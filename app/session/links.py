"""Links to pages. A page as the target of links is made once.

Given a path, Streamlit asks the disk about each folder on the way at every link; each question lets
go of the interpreter's lock, which a hundred sessions then wait for.
"""

import re
from functools import cache
from urllib.parse import urlsplit

import streamlit as st

from app.session.state import Page

NAME = re.compile(r"[\w-]{1,60}", re.ASCII)


@cache
def target(page: Page) -> st.Page:
    """What `st.page_link` takes; only while a page is drawn."""
    return st.Page(page.value, url_path=page.path)


def named_page() -> str:
    """What the visitor's address names behind the last slash: "plan"; "" where it names nothing
    that could be a page."""
    last = urlsplit(st.context.url or "").path.rpartition("/")[2]
    return last if NAME.fullmatch(last) else ""


def page_link(page: Page, label: str, icon: str | None = None, **params: object) -> None:
    """A link to `page` with these URL parameters."""
    query = {name: str(value) for name, value in params.items()}
    st.page_link(target(page), label=label, icon=icon, query_params=query)
