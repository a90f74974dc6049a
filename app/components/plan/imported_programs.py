"""Orders from files beside the pairs: verified, their faults in sentences, the sound simulated."""

from collections.abc import Iterator
from pathlib import PurePath

import streamlit as st

from app import services
from app.components.plan.plan_header import why_not_kept
from app.components.plan.wanted import Wanted
from app.components.shell.allowed import closed
from app.components.shell.boundary import error_box, guarded
from app.formats import count, plain, size
from app.queries.outcomes import Outcome, imported_outcome, ordered
from app.session.links import page_link
from app.session.state import Page
from backend.errors import InvalidInput, StageflowError
from backend.pipeline.exchange.forms import read_any
from backend.pipeline.rules.faults import Fault
from backend.prediction.programs import check_size, examined

MOST_BYTES = 8 * 2**20
SHOWN = 10
HELP = (
    "What every rank computes, in order: Stageflow's text or JSON, torch's CSV "
    "(`format='compute_only'`), an order of Megatron-LM (`1 1 2 -2`) or of Sea AI Lab's zero "
    "bubble (`F0 B0 W0`), or a trace that Stageflow wrote. It is verified, and simulated on this "
    "profile cut into stages of about equal compute; filling and draining count too."
)


def imported_programs(wanted: Wanted) -> list[Outcome]:
    """What the uploaded programs do that have no faults; of the others the faults are said. Each
    has a button that keeps its order as a plan."""
    with st.popover("Import", icon=":material/upload:"):
        files = st.file_uploader(
            "Programs",
            ["txt", "json", "csv"],
            accept_multiple_files=True,
            help=HELP,
            key="programs",
        )
        for file in files or ():
            _keep(wanted, file.file_id, file.name, file.getvalue())
    return [found for file in files or () for found in _outcome(wanted, file.name, file.getvalue())]


def _outcome(wanted: Wanted, name: str, data: bytes) -> Iterator[Outcome]:
    question = wanted.question
    try:
        program = check_size(read_any(_whole(name, data)))
        found = examined(program, question.profile, question.cluster, question.optimizer)
    except StageflowError as reason:
        error_box(reason)
        return
    if found.faults:
        st.warning(_said(name, found.faults), icon=":material/warning:")
    told = imported_outcome(question, found, plain(name))
    if told is not None:
        yield told


def _whole(name: str, data: bytes) -> bytes:
    if len(data) > MOST_BYTES:
        raise InvalidInput(f"{name} is larger than {size(MOST_BYTES)}", "Export less of it.")
    return data


@guarded
def _keep(wanted: Wanted, key: str, name: str, data: bytes) -> None:
    """Closed, with the reason, where no run can repeat the order."""
    try:
        answer, reason = ordered(wanted.question, _whole(name, data)), why_not_kept(wanted)
    except StageflowError as fault:
        answer, reason = None, plain(f"{fault}. {fault.advice}".strip())
    label = f"Keep {plain(name)} as a plan"
    pressed = st.button(label, key=f"keep-{key}", icon=":material/bookmark:", **closed(reason))
    if pressed and answer is not None:
        kept = services.backend().plans.save(
            wanted.stored.id, wanted.question.cluster, answer.prediction, PurePath(name).stem
        )
        st.toast(f"Plan {kept.id} is saved", icon=":material/check:")
        page_link(Page.PLAN, f"Plan {kept.id}: **{plain(kept.name)}**", plan=kept.id)


def _said(name: str, faults: tuple[Fault, ...]) -> str:
    lines = [plain(f"{name} has {count(len(faults), 'fault')}:")]
    lines += [plain(str(fault)) for fault in faults[:SHOWN]]
    if len(faults) > SHOWN:
        lines.append(f"and {len(faults) - SHOWN} more")
    return "\n- ".join(lines)
