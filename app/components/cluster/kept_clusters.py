"""Clusters that are kept by name: how one is kept, and the list of them."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.grid import Column, grid, text, when
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
        st.markdown(f"Kept as **{plain(kept.name)}** for everybody in its project.")
        page_link(Page.NODES, "Rename or delete it on the Nodes page")
        return
    barred = why_not() if cluster else "Mend its YAML first."
    with st.form("keep-cluster", border=False):
        name = st.text_input("Name", max_chars=MAX_NAME, placeholder="such as: the new room")
        st.caption("Keeps what the page shows now, for everybody in the project.")
        if not st.form_submit_button("Keep this cluster", type="primary", **closed(barred)):
            return
    if cluster is not None:
        saved = services.backend().clusters.save(name, cluster)
        state.done(f"The cluster is kept as {plain(saved.name)}")


def cluster_list(clusters: Sequence[StoredCluster]) -> None:
    """A row each, with what can be done with it."""
    grid(
        "clusters",
        (
            text("Cluster", 2.4, lambda kept: f"**{plain(kept.name)}**"),
            text("Devices and links", 4.0, lambda kept: plain(cluster_words(kept.cluster))),
            when("Saved", 1.1, lambda kept: kept.created_at),
            Column("", 1.0, _plan),
            Column("", 1.6, _change),
        ),
        clusters,
    )


def _plan(kept: StoredCluster) -> None:
    page_link(Page.PLAN, "Plan", cluster=write_cluster(kept.cluster))


def _change(kept: StoredCluster) -> None:
    barred = closed(why_not(kept.project_id))
    with st.popover("Change", icon=":material/edit:", key=f"change-cluster-{kept.id}", **barred):
        _rename(kept)
        st.caption("Plans made for it stay as they are when it is deleted.")
        if st.button("Delete the cluster", icon=":material/delete:", key=f"delete-{kept.id}"):
            _delete(kept)


@guarded
def _rename(kept: StoredCluster) -> None:
    with st.form(f"rename-cluster-{kept.id}", border=False):
        name = st.text_input("Name", kept.name, max_chars=MAX_NAME)
        if not st.form_submit_button("Rename the cluster", type="primary"):
            return
    services.backend().clusters.rename(kept.id, name)
    state.done(f"Cluster {kept.id} has a new name")


@guarded
def _delete(kept: StoredCluster) -> None:
    services.backend().clusters.delete(kept.id)
    state.done(f"Cluster {kept.id} is deleted")
