"""Files to take away, each made when it is asked for."""

from collections.abc import Callable

import streamlit as st

from app.components.shell.allowed import closed


def download(
    label: str,
    data: Callable[[], str | bytes],
    file_name: str,
    mime: str | None = None,
    *,
    key: str | None = None,
    barred: str | None = None,
    in_menu: bool = False,
) -> None:
    """A button for the file; `barred` says why it cannot be pressed."""
    st.download_button(
        label,
        data,
        file_name,
        mime,
        key=key or f"download-{file_name}",
        icon=None if in_menu else ":material/download:",
        width="stretch" if in_menu else "content",
        on_click="ignore",
        **closed(barred),
    )
