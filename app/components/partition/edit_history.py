"""Undo and redo on the plan page: the steps are what the URL said, planner, cut and codecs."""

from dataclasses import dataclass, field

import streamlit as st

from app.session import state
from app.session.state import Key, Param

STEP = (Param.PLANNER, Param.CUT, Param.CODECS)
Step = tuple[str, ...]
"""What the URL has of these."""


@dataclass(slots=True)
class History:
    """The steps for one question; `at` is the one that is shown."""

    question: object
    steps: list[Step] = field(default_factory=list)
    at: int = -1

    def note(self, step: Step) -> None:
        """`step` is shown: a new one follows the present one and ends what could be redone."""
        if self.at < 0 or step != self.steps[self.at]:
            self.steps[self.at + 1 :] = [step]
            self.at += 1

    def can(self, by: int) -> bool:
        """Whether there is a step `by` further on."""
        return 0 <= self.at + by < len(self.steps)

    def go(self, by: int) -> Step:
        """The step `by` further on, which must be there, is shown from now on."""
        self.at += by
        return self.steps[self.at]


def edit_history(question: object) -> None:
    """Note what the URL says now, and draw undo, redo and the way back to the planner's.

    Another question begins a new history.
    """
    history = st.session_state.get(Key.EDITS.value)
    if not isinstance(history, History) or history.question != question:
        history = st.session_state[Key.EDITS.value] = History(question)
    history.note(tuple(map(state.text, STEP)))
    with st.container(horizontal=True, gap="small", horizontal_alignment="right"):
        for label, icon, by, keys in (
            ("Undo", "undo", -1, "mod+z"),
            ("Redo", "redo", 1, "mod+shift+z"),
        ):
            st.button(
                label,
                icon=f":material/{icon}:",
                disabled=not history.can(by),
                on_click=_go,
                args=(history, by),
                shortcut=keys,
            )
        st.button(
            "Reset",
            icon=":material/restart_alt:",
            disabled=not (state.text(Param.CUT) or state.text(Param.CODECS)),
            on_click=_reset,
            help="Back to the planner's partition and codecs",
        )


def _go(history: History, by: int) -> None:
    for param, value in zip(STEP, history.go(by), strict=True):
        state.put(param, value)


def _reset() -> None:
    for param in (Param.CUT, Param.CODECS):
        state.put(param, None)
