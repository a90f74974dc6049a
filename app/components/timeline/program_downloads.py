"""The program of a plan in every form that it can be taken away in."""

from collections.abc import Callable

import streamlit as st

from app.formats import plain
from backend.cluster.cluster import Cluster
from backend.errors import StageflowError
from backend.pipeline.exchange.forms import FORMS, ProgramFormat
from backend.planning.plan import Plan
from backend.prediction.programs import exported
from backend.profiles.profile import Profile


def program_downloads(profile: Profile, cluster: Cluster, plan: Plan) -> None:
    """A menu of files; each is written when it is asked for. A form that cannot say this
    program is there without effect, and says why."""
    with st.popover("Download the program", icon=":material/download:"):
        for form in FORMS.values():
            barred = _barred(profile, cluster, plan, form)
            st.download_button(
                form.title,
                data=_writer(profile, cluster, plan, form),
                file_name=f"{profile.name}-{plan.schedule}{form.suffix}",
                mime=form.media,
                key=f"program-{form.name}",
                help=barred,
                disabled=barred is not None,
                on_click="ignore",
                width="stretch",
            )


def _writer(
    profile: Profile, cluster: Cluster, plan: Plan, form: ProgramFormat
) -> Callable[[], bytes]:
    return lambda: exported(profile, cluster, plan, form)


def _barred(profile: Profile, cluster: Cluster, plan: Plan, form: ProgramFormat) -> str | None:
    """Why the form cannot say the program: those of one batch are small enough to try."""
    if not form.one_batch:
        return None
    try:
        exported(profile, cluster, plan, form)
    except StageflowError as reason:
        return plain(f"{reason}. {reason.advice}")
    return None
