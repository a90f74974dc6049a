"""Planning in the background: there at once, else its progress and a way to end it."""

import time
from collections.abc import Sequence
from functools import partial
from math import inf

import streamlit as st

from app.components.shell.boundary import guarded
from app.formats import count, sentence, unbroken
from app.naming import planner_name
from app.queries import planner
from app.queries.background import Background, end_others, under_way
from app.session import state
from app.session.state import Key, Param
from backend.prediction.answer import Answer, Reply
from backend.prediction.question import Question

AT_ONCE, REFRESH = 0.5, 0.5  # seconds
FIRST, GRACE = 1.0, 0.05
"""Seconds for which a page waits for a first answer, and with that for the last one: where both
come together, the first is not drawn."""
Search = tuple[Question, Background[Reply]]
"""A question to one planner, and what is computed for it."""


def searches(questions: Sequence[Question]) -> list[Search]:
    """What is computed for each of them, in the background."""
    return [(question, under_way(planner.asked, question)) for question in questions]


def leave(subject: object, now: Sequence[Search]) -> None:
    """End what this visitor asked about another `subject`, and nobody waits for any longer."""
    end_others(subject, {search: partial(planner.asked.clear, asked) for asked, search in now})


def are_there(found: Sequence[Search]) -> bool:
    """Whether all of them end within `AT_ONCE` of the first that still runs being asked: then there
    is no progress to show. Who looks on waits for that once, and not whenever something is drawn.
    """
    running = [search for _, search in found if search.is_running]
    until = min((search.asked_at for search in running), default=0.0) + AT_ONCE
    return all(search.wait(_left(until)) for search in running)


def are_running(found: Sequence[Search]) -> bool:
    """Whether more may be said."""
    return any(search.is_running for _, search in found)


def have_begun(found: Sequence[Search]) -> None:
    """Wait until all of them have a first answer, at most `FIRST`, and `GRACE` for the last one."""
    running = [search for _, search in found if search.is_running]
    for search in running:
        search.wait_for_first(_left(search.asked_at + FIRST))
    for search in running:
        search.wait(_left(search.said_at + GRACE))


def _left(until: float) -> float:
    """Seconds; none where nobody knows until when."""
    return max(0.0, until - time.monotonic()) if until < inf else 0.0


def replies_of(found: Sequence[Search]) -> list[Reply]:
    """What each said last; a fault of ours is a reply too."""
    said = [search.items[-1] for _, search in found if search.items]
    broken = ((asked, search.fault) for asked, search in found)
    return said + [Reply(q.planner, q.schedule, None, fault) for q, fault in broken if fault]


def progress_view(found: Sequence[Search], key: str) -> None:
    """How far they are, and Cancel; the page is drawn again when one has said something, and when
    they have ended."""
    st.fragment(_progress, run_every=REFRESH)(found, key, num_said(found))


def num_said(found: Sequence[Search]) -> int:
    """How many replies there are; a page that drew fewer is drawn again."""
    return sum(search.done for _, search in found)


@guarded
def _progress(found: Sequence[Search], key: str, drawn: int) -> None:
    running = [(asked, search) for asked, search in found if search.is_running]
    if not running or num_said(found) > drawn:
        st.rerun()
    share, said = _how_far(running, len(found))
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"progress-{key}"):
        st.progress(share, text=said)
        st.button(
            "Cancel",
            icon=":material/stop_circle:",
            key=f"cancel-{key}",
            on_click=_cancel,
            args=(running,),
        )


def _how_far(running: Sequence[Search], total: int) -> tuple[float, str]:
    asked, search = running[0]
    _, done, candidates = search.progress
    name = planner_name(asked.planner)
    said = (
        f"{name}: {done} of {count(candidates, 'candidate')}"
        if candidates
        else f"{name}: planning…"
    )
    if total > 1:
        said = f"{total - len(running)} of {total} answers · {said}"
    within = min(1.0, done / candidates) if candidates else 0.0
    return (total - len(running) + within) / total, said


def _cancel(running: Sequence[Search]) -> None:
    for _, search in running:
        search.cancel()


def stopped_note(found: Sequence[Search]) -> bool:
    """That the search was ended before it was through, or lost its process, and the way to begin it
    again; whether it was."""
    ended = [each for each in found if each[1].was_cancelled or each[1].was_lost]
    if not ended:
        return False
    fault = next((search.fault for _, search in ended if search.was_lost), None)
    done = sum(search.progress[1] for _, search in ended)
    total = sum(search.progress[2] for _, search in ended)
    tried = f" after {done} of {count(total, 'candidate')}" if total else ""
    has_plan = any(reply.answer for _, search in ended for reply in search.items)
    said = "This is the best plan found so far." if has_plan else "There was no plan yet."
    why = sentence(str(fault)) if fault else "Planning was cancelled"
    advice = f" {fault.advice}" if fault else ""
    with st.container(horizontal=True, vertical_alignment="center", key="stopped"):
        st.warning(f"{why}{tried}. {said}{advice}", icon=":material/stop_circle:")
        st.button("Plan again", icon=":material/restart_alt:", on_click=_forget, args=(ended,))
    return True


def limit_note(found: Answer, question: Question) -> None:
    """That the search came to its limit, and the way to go on with it."""
    if not (words := found.limit_words):
        return
    with st.container(horizontal=True, vertical_alignment="center", key="limit"):
        st.info(unbroken(words), icon=":material/hourglass_bottom:")
        if found.is_short and not question.search_on:
            st.button("Search longer", icon=":material/play_arrow:", on_click=_search_on)


def _search_on() -> None:
    state.put(Param.SEARCH_ON, "1")


def _forget(ended: Sequence[Search]) -> None:
    """These, and whatever else this visitor asked that lost its process."""
    for asked, _ in ended:
        planner.asked.clear(asked)
    _, mine = st.session_state.get(Key.PLANNING.value, (None, {}))
    for search, forget in mine.items():
        if search.was_lost:
            forget()
