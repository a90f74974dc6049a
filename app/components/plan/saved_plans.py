"""The saved plans: their list, and the one that a link opens.

Its inputs are put into the form, and it is shown as it was saved until one of them is changed.
"""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.plan.wanted import Wanted
from app.components.shell.grid import Column, grid, small, text, when
from app.components.shell.labels_form import tags_text
from app.components.shell.layout import card
from app.components.shell.tick import tick_box, ticked
from app.formats import count, plain, rate
from app.naming import plan_name
from app.session import state
from app.session.links import page_link
from app.session.state import Key, Page, Param, bound
from backend.cluster.document import write_cluster
from backend.pipeline.codecs.catalog import AUTO, PLAIN, write_codecs
from backend.pipeline.schedules.catalog import plannable_schedules
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.cuts import BY_HAND, write_cut
from backend.planning.plan import Plan
from backend.planning.savings import MemorySaving
from backend.prediction.question import PLANNER_NAMES
from backend.runs.plans import StoredPlan
from backend.runs.request.as_planned import planned_rule

SHOWN = 8
PLANNABLE = {member.name for member in plannable_schedules()}


def saved_plans() -> None:
    """The newest of them, of any profile; nothing where there are none."""
    backend = services.backend()
    found = backend.plans.list()
    if not found:
        return
    with card("Saved plans", f"{count(len(found), 'plan')}, newest first"):
        is_long = len(found) > SHOWN and not st.toggle("Show all", **bound(Param.ALL))
        shown = found[:SHOWN] if is_long else found
        ids = {kept.profile_id for kept in shown}
        models, names = backend.profiles.models(ids), backend.profiles.names(ids)
        _compare(ticked(Key.TICKED_PLANS) & {kept.id for kept in found})
        grid(
            "plans",
            (
                PICK,
                NAME,
                small("Model", 1.3, lambda kept: models[kept.profile_id]),
                small("Profile", 0.9, lambda kept: names[kept.profile_id] or str(kept.profile_id)),
                *COLUMNS,
            ),
            shown,
        )


def _compare(chosen: set[int]) -> None:
    """The button that lays two ticked plans side by side."""
    if not chosen:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button(
            "Compare",
            icon=":material/compare:",
            type="primary",
            disabled=len(chosen) != 2,
            help="Two plans side by side",
        ):
            state.go(Page.COMPARE, of="plans", plans=",".join(map(str, sorted(chosen))))
        st.caption("Two plans side by side." if len(chosen) == 2 else "Tick two to compare them.")
        st.button("Clear", type="tertiary", on_click=ticked(Key.TICKED_PLANS).clear)


def _pick(stored: StoredPlan) -> None:
    tick_box(f"Select plan {stored.id}", f"tick-{stored.id}", Key.TICKED_PLANS, {stored.id})


def _name(stored: StoredPlan) -> None:
    page_link(Page.PLAN, f"**{plain(stored.name)}** · plan {stored.id}", plan=stored.id)
    if said := tags_text(stored):
        st.markdown(said)


PICK = Column("", 0.35, _pick)
NAME = Column("Plan", 2.6, _name)
COLUMNS: Sequence[Column[StoredPlan]] = (
    small("Partition", 2.0, lambda kept: plan_name(kept.plan)),
    text("Throughput", 1.5, lambda kept: rate(kept.prediction.samples_per_second)),
    small("Devices", 1.4, lambda kept: f"{kept.cluster.num_devices} × {kept.cluster.device_names}"),
    when("Saved", 1.4, lambda kept: kept.created_at),
)


def opened_plan() -> StoredPlan | None:
    """That of ?plan=; at its first sight what it was made for goes into the URL. Raises
    `NotFound`."""
    number = state.wanted_id(Param.PLAN, "plan")
    if number is None:
        st.session_state.pop(Key.SAVED.value, None)
        return None
    saved = services.backend().plans.get(number)
    if _opened()[0] != number:
        _put(saved, services.backend().profiles.get(saved.profile_id).profile.microbatch)
        st.session_state[Key.SAVED.value] = (number, None)
    elif saved.plan.planner == BY_HAND and not state.text(Param.CUT):  # taken back
        state.put(Param.PLAN, None)
        return None
    return saved


def is_as_opened(wanted: Wanted) -> bool:
    """Whether nothing else is asked than when the plan was opened; from then on it is not shown."""
    number, params = _opened()
    if params is None:
        st.session_state[Key.SAVED.value] = (number, wanted.params)
    elif params != wanted.params:
        state.put(Param.PLAN, None)
        return False
    return True


def _opened() -> tuple[int | None, object]:
    found: tuple[int | None, object] = st.session_state.get(Key.SAVED.value, (None, None))
    return found


def _put(saved: StoredPlan, microbatch: int) -> None:
    """The inputs that ask for as many samples per update, counted in microbatches of the profile's
    size."""
    plan, rule = saved.plan, planned_rule(saved.prediction)
    batch = plan.batch * plan.microbatch // microbatch
    by_hand = plan.planner == BY_HAND
    limited = any(device.memory is not None for device in saved.cluster.each)
    for param, value in (
        (Param.PROFILE, saved.profile_id),
        (Param.CLUSTER, write_cluster(saved.cluster)),
        (Param.SCHEDULE, plan.schedule if plan.schedule in PLANNABLE else None),
        (Param.BATCH, batch if plan.batch > 1 and batch else None),
        (Param.RECOMPUTE, MemorySaving.ALWAYS if plan.recompute and not limited else None),
        (Param.SHARD_STATE, MemorySaving.ALWAYS if plan.shard_state and not limited else None),
        (Param.PLANNER, plan.planner if plan.planner in PLANNER_NAMES else None),
        (Param.CUT, write_cut(plan.partition) if by_hand else None),
        (Param.CODECS, _codecs(plan) if by_hand else None),
        (Param.CHUNKS, plan.partition.chunks if plan.partition.chunks > 1 else None),
        (Param.PIPELINES, plan.num_pipelines if plan.shares_devices else None),
        (Param.RUN_AHEAD, _depth(plan)),
        (Param.CODEC, _codec(plan)),
        (Param.OPTIMIZER, rule.name),
        (Param.STATE_PRECISION, saved.prediction.state_precision),
    ):
        state.put(param, value)
    for param, chosen in (
        (Param.AVERAGED, rule.ema > 0),
        (Param.SITES, plan.sites.words if plan.sites and plan.is_apart else ""),
        (Param.CODEC_OF_SUMS, plan.codec_of_sums.words if plan.codec_of_sums else ""),
        (Param.SPLIT_CHANNELS, bool(plan.splits)),
    ):
        state.choose(param, chosen)


def _depth(plan: Plan) -> int | None:
    """Further microbatches in flight per hop; None where no hop could have some."""
    has_hops = plan.partition.pipeline_size > 1
    return plan.run_ahead if has_hops and schedule_named(plan.schedule).runs_ahead else None


def _codec(plan: Plan) -> str:
    """The codec of all cuts. Where they differ, what planners are asked for to choose one at each
    cut: they are told none of a single cut, which is theirs to make. A plan by hand has those of
    its cuts beside the partition (`Param.CODECS`)."""
    names = set(plan.codecs)
    if len(names) > 1:
        return PLAIN if plan.planner == BY_HAND else AUTO
    return next(iter(names), "") or PLAIN


def _codecs(plan: Plan) -> str:
    """The codec of each cut, where they differ."""
    return write_codecs(plan.codecs) if len(set(plan.codecs)) > 1 else ""
