"""Widgets of the forms that ask for a run."""

from typing import Any

import streamlit as st

from app.session.state import Param


class Fields:
    """`bound`: the values stand in the URL; otherwise they last for the page."""

    def __init__(self, bound: bool) -> None:
        self._bound = bound

    def _key(self, param: Param) -> dict[str, Any]:
        if self._bound:
            return {"key": param.value, "bind": "query-params"}
        return {"key": f"launch-{param.value}"}

    def text(self, label: str, value: str, param: Param, note: str) -> str:
        return str(st.text_input(label, value, help=note, **self._key(param)))

    def number(self, label: str, value: int, param: Param, least: int, note: str = "") -> int:
        found = st.number_input(
            label, min_value=least, value=value, step=1, help=note or None, **self._key(param)
        )
        return int(found)

    def choice(self, label: str, names: list[str], value: str, param: Param, told: Any) -> str:
        index = names.index(value) if value in names else 0
        found = st.selectbox(label, names, index=index, format_func=told, **self._key(param))
        return str(found)

    def real(self, label: str, value: float, param: Param, note: str = "") -> float:
        found = st.number_input(
            label,
            min_value=0.0,
            value=value,
            step=0.1,
            format="%.5g",
            help=note or None,
            **self._key(param),
        )
        return float(found)
