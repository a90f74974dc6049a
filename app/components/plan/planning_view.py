"""Planning in the background: there at once, else its progress and a way to end it."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from app.components.shell.boundary import guarded
from app.formats import count
from app.naming import planner_name
from app.queries import planner
from app.queries.background import Background, Visitor
from app.session import state
from app.session.state import Key, Param
from backend.prediction.answer import Answer, Reply
from backend.prediction.question import Question

AT_ONCE, REFRESH = 0.5, 0.5  # seconds
Search = tuple[Question, Background[Reply]]
"""A question to one planner, and what is computed for it."""


def searches(questions: Sequence[Question]) -> list[Search]:
    """What is computed for each of them, in the background."""
    return [(question, planner.asked(question)) for question in questions]


def leave(subject: object, now: Sequence[Search]) -> None:
    """End what this visitor asked about another `subject`, and nobody waits for any longer."""
    end_others(subject, {search: partial(planner.asked.clear, asked) for asked, search in now})


def end_others(subject: object, now: Mapping[Background[Any], Callable[[], None]]) -> None:
    """The same of whatever is computed; each with what forgets it."""
    before: tuple[object, Mapping[Background[Any], Callable[[], None]]]
    before = st.session_state.get(Key.PLANNING.value, (None, {}))
    old, running = before
    me = st.session_state.setdefault(Key.VISITOR.value, Visitor())
    for search in now:
        search.waiting.add(me)
    if old != subject:
        for search, forget in running.items():
            if search in now:
                continue
            search.waiting.discard(me)
            if search.is_running and not search.waiting:
                search.cancel()
                forget()
        running = {}
    st.session_state[Key.PLANNING.value] = (subject, {**running, **now})


def are_there(found: Sequence[Search]) -> bool:
    """Whether all of them end within `AT_ONCE` of the first that still runs being asked: then there
    is no progress to show. Who looks on waits for that once, and not whenever something is drawn.
    """
    running = [search for _, search in found if search.is_running]
    until = min((search.asked_at for search in running), default=0.0) + AT_ONCE
    return all(search.wait(max(0.0, until - time.monotonic())) for search in running)


def replies_of(found: Sequence[Search]) -> list[Reply]:
    """What each said last; a fault of ours is a reply too."""
    said = [search.items[-1] for _, search in found if search.items]
    broken = ((asked, search.fault) for asked, search in found)
    return said + [Reply(q.planner, q.schedule, None, fault) for q, fault in broken if fault]


def progress_view(found: Sequence[Search], key: str) -> None:
    """How far they are, and Cancel; the page is drawn again when one has said something, and when
    they have ended."""
    st.fragment(_progress, run_every=REFRESH)(found, key, _said(found))


def _said(found: Sequence[Search]) -> int:
    return sum(search.done for _, search in found)


@guarded
def _progress(found: Sequence[Search], key: str, drawn: int) -> None:
    running = [(asked, search) for asked, search in found if search.is_running]
    if not running or _said(found) > drawn:
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


def stopped_note(found: Sequence[Search]) -> None:
    """That the search was ended before it was through, and the way to begin it again."""
    ended = [(asked, search) for asked, search in found if search.was_cancelled]
    if not ended:
        return
    done = sum(search.progress[1] for _, search in ended)
    total = sum(search.progress[2] for _, search in ended)
    tried = f" after {done} of {count(total, 'candidate')}" if total else ""
    has_plan = any(reply.answer for _, search in ended for reply in search.items)
    said = "This is the best plan found so far." if has_plan else "There was no plan yet."
    with st.container(horizontal=True, vertical_alignment="center", key="stopped"):
        st.warning(f"Planning was cancelled{tried}. {said}", icon=":material/stop_circle:")
        st.button("Plan again", icon=":material/restart_alt:", on_click=_forget, args=(ended,))


def limit_note(found: Answer, question: Question) -> None:
    """That the search came to its limit, and the way to go on with it."""
    if not (words := found.limit_words):
        return
    with st.container(horizontal=True, vertical_alignment="center", key="limit"):
        st.info(words, icon=":material/hourglass_bottom:")
        if found.is_short and not question.search_on:
            st.button("Search longer", icon=":material/play_arrow:", on_click=_search_on)


def _search_on() -> None:
    state.put(Param.SEARCH_ON, "1")


def _forget(ended: Sequence[Search]) -> None:
    for asked, _ in ended:
        planner.asked.clear(asked)
