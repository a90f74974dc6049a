"""Widgets of the forms that ask for a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import streamlit as st

from app.formats import plain, sentence
from app.session.state import Param, bound
from backend.errors import InvalidInput

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fields:
    """`bound`: the values are in the URL; otherwise they last for the page. `faults`: of what
    cannot be read, with which no run starts."""

    bound: bool
    faults: list[str] = field(default_factory=list)

    def read(self, reader: Callable[[], T], otherwise: T) -> T:
        """What `reader` gives. Where it raises `InvalidInput`, the reason stands below the field
        that was drawn last."""
        try:
            return reader()
        except InvalidInput as fault:
            self.faults.append(sentence(str(fault)))
            st.error(plain(f"{sentence(str(fault))}. {fault.advice}"))
            return otherwise

    def text(self, label: str, value: str, param: Param, note: str = "", **look: Any) -> str:
        return str(st.text_input(label, value, help=note or None, **look, **self._key(param)))

    def whole(self, label: str, value: int, param: Param, note: str = "", least: int = 1) -> int:
        look: dict[str, Any] = {"min_value": least, "value": value, "step": 1, "help": note or None}
        try:
            return int(st.number_input(label, **look, **self._key(param)))
        except OverflowError:  # Streamlit takes the URL's "inf" for a whole number
            return int(st.number_input(label, **look, key=f"launch-{param.value}"))

    def choice(
        self,
        label: str,
        names: Mapping[str, str],
        value: str,
        param: Param,
        note: str = "",
        **look: Any,
    ) -> str:
        """One of the keys of `names`, which says how they are shown."""
        options = list(names)
        index = options.index(value) if value in options else 0
        look |= {"help": note or None, **self._key(param)}
        return str(st.selectbox(label, options, index, names.__getitem__, **look))

    def real(
        self,
        label: str,
        value: float,
        param: Param,
        note: str = "",
        least: float = 0.0,
        most: float | None = None,
        step: float = 0.1,
        format: str = "%.5g",
        **look: Any,
    ) -> float:
        return float(
            st.number_input(
                label,
                least,
                most,
                value,
                step=step,
                format=format,
                help=note or None,
                **look,
                **self._key(param),
            )
        )

    def switch(self, label: str, value: bool, param: Param, note: str = "") -> bool:
        return st.toggle(label, value, help=note or None, **self._key(param))

    def key(self, param: Param) -> str:
        """Of the session, where the field's value is."""
        return param.value if self.bound else f"launch-{param.value}"

    def _key(self, param: Param) -> dict[str, Any]:
        return bound(param) if self.bound else {"key": self.key(param)}
