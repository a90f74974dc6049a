"""Clusters that are kept by name: how one is kept, and the list of them."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.confirm import confirm
from app.components.shell.grid import Column, grid, text, when
from app.components.shell.labels_form import labels_form, tags_text
from app.formats import plain
from app.naming import cluster_words
from app.session import state
from app.session.links import page_link
from app.session.state import Page
from backend.cluster.cluster import Cluster
from backend.cluster.document import write_cluster
from backend.runs.clusters import MAX_NAME, StoredCluster


@guarded
def keep_form(cluster: Cluster | None, kept: StoredCluster | None) -> None:
    """Keeps `cluster` under a name; where it is `kept` already, says so."""
    if kept is not None:
        st.markdown(f"Saved as **{plain(kept.name)}** for everybody in its project.")
        page_link(Page.NODES, "Change or delete it on the Nodes page")
        return
    barred = why_not() if cluster else "Correct its YAML first."
    with st.form("keep-cluster", border=False):
        name = st.text_input("Name", max_chars=MAX_NAME, placeholder="such as: the new room")
        st.caption("For everybody in the project: the Plan page lists it among the clusters.")
        if not st.form_submit_button("Save this cluster", type="primary", **closed(barred)):
            return
    if cluster is not None:
        saved = services.backend().clusters.save(name, cluster)
        state.done(f"The cluster is saved as {plain(saved.name)}")


def cluster_list(clusters: Sequence[StoredCluster]) -> None:
    """A row each, with what can be done with it."""
    grid(
        "clusters",
        (
            Column("Cluster", 2.4, _name),
            text("Devices and links", 4.0, lambda kept: plain(cluster_words(kept.cluster))),
            when("Saved", 1.1, lambda kept: kept.created_at),
            Column("", 1.0, _plan),
            Column("", 2.4, _change),
        ),
        clusters,
    )


def _plan(kept: StoredCluster) -> None:
    page_link(Page.PLAN, "Plan", cluster=write_cluster(kept.cluster))


def _name(kept: StoredCluster) -> None:
    st.markdown(f"**{plain(kept.name)}**")
    if said := tags_text(kept):
        st.markdown(said)


def _change(kept: StoredCluster) -> None:
    with st.container(horizontal=True, gap="small"):
        labels_form("cluster", kept, MAX_NAME, services.backend().clusters.label)
        confirm(
            "Delete",
            "delete",
            f"Delete **{plain(kept.name)}**? Plans made for it stay as they are.",
            "Delete the cluster",
            lambda: _delete(kept),
            key=f"delete-{kept.id}",
            barred=why_not(kept.project_id),
        )


def _delete(kept: StoredCluster) -> None:
    services.backend().clusters.delete(kept.id)
    state.done(f"Cluster {kept.id} is deleted")
