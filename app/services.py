"""One Backend for the process, made on the first visit."""

import streamlit as st

from backend.bootstrap import Backend, connect
from backend.settings import load_settings


def backend() -> Backend:
    """The services. Raises `SchemaOutdated` or `DatabaseUnreachable`; asks again next time."""
    settings = load_settings()
    return _connected(settings.sql_url, str(settings.home))


@st.cache_resource(show_spinner=False, max_entries=4)
def _connected(sql_url: str, home: str) -> Backend:
    return connect(load_settings())
