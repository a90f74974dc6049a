"""Steps in their order: what is done, and what comes next."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from app.session.links import page_link
from app.session.state import Page


@dataclass(frozen=True, slots=True)
class ChecklistStep:
    """`meaning` says in a sentence what it is; `to` is where it is done."""

    title: str
    meaning: str
    to: Page
    done: bool


def step_list(steps: Sequence[ChecklistStep]) -> None:
    """A row each: its title as a link, its meaning, its mark. The first that is not done is
    marked as the next."""
    coming = next((step for step in steps if not step.done), None)
    with st.container(key="grid-steps", gap=None):
        for number, step in enumerate(steps, start=1):
            _row(number, step, is_next=step is coming)


def _row(number: int, step: ChecklistStep, *, is_next: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(gap=None):
            page_link(step.to, f"**{number} · {step.title}**")
            st.caption(step.meaning)
        if step.done:
            st.badge("done", icon=":material/check:", color="green")
        elif is_next:
            st.badge("next", icon=":material/arrow_forward:", color="blue")
