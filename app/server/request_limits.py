"""How much a browser may send by websocket."""

from streamlit.web.server.starlette import starlette_server

MAX_MESSAGE = 4 * 1024**2
"""Bytes of one message: the state of a page's widgets is some kB."""


def apply() -> None:
    """Streamlit gives the server one limit for what pages are sent and for what they send
    (`server.maxMessageSize`, 200 MB); the second is never large, and is held in memory."""
    vars(starlette_server)["get_max_message_size_bytes"] = lambda: MAX_MESSAGE
