"""The plans that there are, best first, each with what decides it, to choose one; and the faults
of the planners that have none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.pareto import pareto_chart
from app.differences import (
    UNKNOWN_FIGURES,
    figure_name,
    figure_words,
    target_words,
    time_words,
)
from app.formats import change, count, plain, rate, sentence, unbroken
from app.naming import partition_name, planner_name
from app.session import state
from app.session.state import Param
from backend.comparison.aims import FASTEST, Aim
from backend.planning.plan import Plan
from backend.prediction.answer import Answer, Reply, ranked
from backend.prediction.bottleneck import WAITING
from backend.prediction.question import PLANNER_NAMES

KEY, SAVED = "alternative", "saved"


@dataclass(frozen=True, slots=True)
class Alternative:
    """`also`: other planners that found the same plan."""

    answer: Answer
    also: tuple[str, ...] = ()

    @property
    def planner(self) -> str:
        return self.answer.prediction.plan.planner

    @property
    def speed(self) -> float:
        return self.answer.prediction.samples_per_second


def alternatives(
    replies: Sequence[Reply], chosen: Answer | None, saved: str = "", aim: Aim = FASTEST
) -> None:
    """All of them, `chosen` marked; the one by hand, where it is chosen, in its rank. `saved`: how
    the chosen one is called where it is a kept plan. `aim`: what they are ranked by."""
    shown = {
        SAVED if saved and found.answer is chosen else found.planner: found
        for found in listed(replies, chosen, aim)
    }
    if shown:
        is_known = _is_known(shown.values(), aim)
        _choice(shown, chosen, saved, aim if is_known else FASTEST)
        if aim.fewest is not None and not is_known:
            st.caption(UNKNOWN_FIGURES[aim.fewest.figure])
        _tradeoffs([found.answer for found in shown.values()])
    _refused([reply for reply in replies if reply.fault])


def _is_known(found: Iterable[Alternative], aim: Aim) -> bool:
    """Whether any has what they are ranked by; samples/s they have."""
    fewest = aim.fewest
    return fewest is None or any(fewest.of(each.answer) is not None for each in found)


def _choice(shown: Mapping[str, Alternative], chosen: Answer | None, saved: str, aim: Aim) -> None:
    best = max(found.speed for found in shown.values())
    each = [set(found.answer.reasons) for found in shown.values()]
    said = set.intersection(*each) if len(each) > 1 else set()
    named = chosen.prediction.plan.planner if chosen else None
    st.session_state[KEY] = SAVED if saved else named
    st.radio(
        "Plans",
        list(shown),
        key=KEY,
        format_func=lambda key: _label(
            shown[key].answer.prediction.plan, saved if key == SAVED else planner_name(key)
        ),
        captions=[_caption(found, best, said, aim) for found in shown.values()],
        label_visibility="collapsed",
        on_change=_choose,
    )


def _tradeoffs(answers: Sequence[Answer]) -> None:
    """Seconds, energy and money of all, where energy or prices are known."""
    if drawing := pareto_chart(answers):
        with st.expander("Seconds, energy and money", icon=":material/scatter_plot:"):
            alt = "Seconds of a sample beside its energy or cost, for each plan"
            st.plotly_chart(drawing, key="pareto", config=CONFIG, alt=alt)
            st.caption("Full: no other plan is as good in all of these and better in one.")


def listed(
    replies: Sequence[Reply], chosen: Answer | None, aim: Aim = FASTEST
) -> list[Alternative]:
    """The plans, the most samples/s first, or the soonest at the aim. Of planners that found the
    same one the chosen one stands for all, else the first."""
    answered = [reply for reply in replies if reply.answer]
    if chosen:
        plan = chosen.prediction.plan
        answered.insert(0, Reply(plan.planner, plan.schedule, chosen))
    answers = aim.ranked(ranked(answered)) if answered else []
    answers = _one_each(answers, chosen)
    names: dict[Plan, list[str]] = {}
    for reply in replies:
        if reply.answer:
            names.setdefault(_same(reply.answer), []).append(reply.planner)
    return [
        Alternative(
            answer,
            tuple(n for n in names.get(_same(answer), ()) if n != answer.prediction.plan.planner),
        )
        for answer in answers
    ]


def _one_each(answers: Sequence[Answer], chosen: Answer | None) -> list[Answer]:
    """The first of each planner, and the chosen one: with an aim `best` has several."""
    first: dict[str, Answer] = {}
    for found in answers:
        first.setdefault(found.prediction.plan.planner, found)
    return [a for a in answers if a is chosen or a is first[a.prediction.plan.planner]]


def _same(found: Answer) -> Plan:
    return replace(found.prediction.plan, planner="")


def _choose() -> None:
    wanted = st.session_state[KEY]
    if wanted in PLANNER_NAMES:  # else a label that is no more: a planner has found another plan
        state.put(Param.PLANNER, wanted)
        for param in (Param.CUT, Param.CODECS, Param.PLAN):
            state.put(param, None)


def _caption(found: Alternative, best: float, said: set[str], aim: Aim) -> str:
    """Its figures, its first reason that is not `said` of all, and what it waits."""
    behind = "best" if found.speed >= best else change(found.speed, best)
    also = f" · also {', '.join(map(planner_name, found.also))}" if found.also else ""
    own = (reason for reason in found.answer.reasons if reason not in said)
    decisive = next(own, found.answer.reason).split("; ")[0].removesuffix(".")
    waiting = (reason for reason in own if reason.startswith(WAITING))
    said_too = "".join(f" {plain(unbroken(reason))}" for reason in waiting)
    schedule = found.answer.prediction.plan.schedule
    each = count(found.answer.samples_per_update, "sample")
    return (
        f"{_by_aim(found.answer, aim)}**{rate(found.speed)}** · {behind} · {plain(schedule)} · "
        f"{each} per update{also}  \n"
        f"{plain(unbroken(decisive))}.{said_too}"
    )


def _by_aim(found: Answer, aim: Aim) -> str:
    """A line with what it is ranked by, where that is not its samples/s."""
    if aim.target is not None:
        known = time_words(aim.time_of(found))
        return f"**To {target_words(aim.target)}**: {plain(known)}  \n"
    if aim.fewest is not None:
        name = figure_name(aim.fewest.figure).capitalize()
        return f"**{name}**: {plain(figure_words(aim.fewest.figure, found))}  \n"
    return ""


def _label(plan: Plan, name: str) -> str:
    """Partition and planner: radio buttons need labels that differ."""
    return f"**{partition_name(plan.partition)}** · {plain(name)}"


def _refused(refused: Sequence[Reply]) -> None:
    """Why the others have no plan, and what to do about it."""
    if not refused:
        return
    with st.expander(f"{count(len(refused), 'planner')} without a plan", icon=":material/block:"):
        for reply in refused:
            fault = reply.fault
            said = f"{sentence(str(fault))}. {fault.advice}" if fault else ""
            st.markdown(f":small[**{planner_name(reply.planner)}**: {plain(said)}]")
