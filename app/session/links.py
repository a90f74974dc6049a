"""Pages as targets of links, made once.

Given a path, Streamlit asks the disk about each folder on the way at every link; each question lets
go of the interpreter's lock, which a hundred sessions then wait for.
"""

from functools import cache

import streamlit as st

from app.session.state import Page


@cache
def target(page: Page) -> st.Page:
    """What `st.page_link` takes; only while a page is drawn."""
    return st.Page(page.value, url_path=page.path)
