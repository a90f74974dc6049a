"""A partition over its layers, to look at and to change; below it the devices."""

from functools import partial

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.placement import placement
from app.components.partition import draft
from app.components.partition.cut_form import cut_form
from app.components.partition.edit_history import edit_history
from app.components.partition.partition_editor import partition_editor
from app.components.profile.detail_choice import detail_choice
from app.components.shell.layout import card
from app.formats import plain
from app.naming import cluster_words, partition_name
from backend.cluster.cluster import Cluster
from backend.planning.plan import Partition, Plan
from backend.profiles.profile import Profile

MOST_DEVICES = 128
DEVICES = "Which stage sits on which device"


def partition_view(
    profile: Profile,
    cluster: Cluster,
    cut: Partition,
    base: Plan,
    question: object,
) -> None:
    """Draw both, in the same greys; changes go to the URL and can be undone as long as the
    `question` is the same. `base` is the planner's plan; what is changed is what each site does."""
    num_devices = cluster.num_devices // base.num_sites
    changed = partial(draft.change, cut, base.partition, num_devices)
    with card("Partition", f"{partition_name(cut)} · {plain(cluster_words(cluster))}"):
        in_order = profile.in_order(cut.order)
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            detail = detail_choice(in_order.graph)
            edit_history(question)
        partition_editor(in_order, cut, num_devices, changed, detail)
        if cluster.num_devices <= MOST_DEVICES:
            drawing = placement(cluster, cut, base.num_sites)
            st.plotly_chart(drawing, key="placement", config=CONFIG, alt=DEVICES)
        with st.expander("Edit as text", icon=":material/keyboard:"):
            cut_form(cut, changed)
