"""A plan in every form that it can be taken away in: its program, and for other trainers."""

from functools import partial

import streamlit as st

from app.components.shell.download import download
from app.formats import plain
from backend.cluster.cluster import Cluster
from backend.errors import StageflowError
from backend.planning.plan import Plan
from backend.prediction.programs import exported
from backend.prediction.trainers.forms import PLAN_FORMS, PlanFormat, TrainerFormat
from backend.profiles.profile import Profile


def program_downloads(profile: Profile, cluster: Cluster, plan: Plan) -> None:
    """A menu of files; each is written when it is asked for. A form that cannot say this
    plan is there without effect, and says why."""
    with st.popover("Download the program", icon=":material/download:"):
        for form in PLAN_FORMS.values():
            download(
                form.title,
                partial(exported, profile, cluster, plan, form),
                f"{profile.name}-{plan.schedule}{form.suffix}",
                form.media,
                key=f"program-{form.name}",
                barred=_barred(profile, cluster, plan, form),
                in_menu=True,
            )


def _barred(profile: Profile, cluster: Cluster, plan: Plan, form: PlanFormat) -> str | None:
    """Why the form cannot say the plan: those of one batch are small enough to try."""
    if not (isinstance(form, TrainerFormat) or form.one_batch):
        return None
    try:
        exported(profile, cluster, plan, form)
    except StageflowError as reason:
        return plain(f"{reason}. {reason.advice}")
    return None
