"""Choose a cluster: one that is kept, a preset with its count, or one described in a form or YAML.

The whole choice is one string in the URL: "local:2", or the YAML itself, also of a kept one: a
link shows the same when that is deleted.
"""

from collections.abc import Mapping
from contextlib import suppress

import streamlit as st

from app import services
from app.components.cluster.kept_clusters import keep_form
from app.components.cluster.record_fields import record_fields
from app.components.shell.boundary import guarded
from app.formats import plain
from app.naming import cluster_words
from app.session import state
from app.session.state import Param
from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.document import EXAMPLE, read_cluster, write_cluster
from backend.cluster.presets import PRESETS, named_preset, preset, preset_of
from backend.errors import InvalidInput
from backend.runs.clusters import StoredCluster

CUSTOM, KEPT = "custom", "kept "
DEFAULT = "local:2"
MOST = 512
WATTS = "0 = not known; of known types the most that they draw is taken"
PRICE = "Of a device, in your currency; 0 = not known"
TITLES = {name: known.title for name, known in PRESETS.items()} | {CUSTOM: "Custom…"}


def cluster_form() -> Cluster | None:
    """The chosen cluster; None, with the fault said, where the URL holds a broken one."""
    written = state.text(Param.CLUSTER, DEFAULT)
    kept = {f"{KEPT}{each.id}": each for each in services.backend().clusters.list()}
    name, count = _preset(written, kept)
    row = st.container(horizontal=True)
    choices = [*kept, *PRESETS, CUSTOM]
    chosen = row.selectbox(
        "Cluster",
        choices,
        index=choices.index(name),
        format_func=lambda key: kept[key].name if key in kept else TITLES[key],
    )
    if chosen in kept:
        return _custom(write_cluster(kept[chosen].cluster), kept[chosen])
    if chosen == CUSTOM:
        return _custom(written if name == CUSTOM else EXAMPLE)
    wanted = row.number_input(
        "Devices" if chosen == "local" else "Servers",
        1,
        MOST,
        count,
        key=f"count-{chosen}",
        width=110,
    )
    asked = known[1] if (known := named_preset(written)) and known[0] == chosen else wanted
    if asked != count and wanted == count:
        unit = "devices" if chosen == "local" else "servers"
        st.warning(
            f"The link asks for {asked:,} {unit}; a page plans for 1 to {MOST}. "
            f"What follows is for {wanted}.",
            icon=":material/warning:",
        )
    else:
        state.put(Param.CLUSTER, f"{chosen}:{wanted}")
    cluster = preset(chosen, int(wanted))
    if chosen != "local":
        st.caption(plain(f"{cluster_words(cluster)}. Source: {PRESETS[chosen].source}"))
    return cluster


def _preset(written: str, kept: Mapping[str, StoredCluster]) -> tuple[str, int]:
    """Which preset, and how many; for YAML the kept cluster or preset that it describes, else
    `CUSTOM`."""
    if known := named_preset(written):
        return known[0], min(max(known[1], 1), MOST)
    if named := next((key for key, each in kept.items() if each.name == written), None):
        return named, 2  # of a link by hand, as after --cluster
    with suppress(InvalidInput):
        cluster = read_cluster(written)
        if named := next((key for key, each in kept.items() if each.cluster == cluster), None):
            return named, 2
        return preset_of(cluster) or (CUSTOM, 2)
    return CUSTOM, 2


def _custom(written: str, kept: StoredCluster | None = None) -> Cluster | None:
    cluster = _read(written)
    with st.popover("Edit cluster", icon=":material/dns:", width="stretch"):
        form, text, keep = st.tabs(["Form", "YAML", "Save"])
        with form:
            _by_form(cluster or read_cluster(EXAMPLE))
        with text:
            _by_text(written)
        with keep:
            keep_form(cluster, kept)
    if cluster is None:
        return None
    state.put(Param.CLUSTER, written)
    st.caption(plain(cluster_words(cluster)))
    return cluster


@guarded
def _read(written: str) -> Cluster:
    return read_cluster(written)


@guarded
def _by_text(written: str) -> None:
    with st.form("cluster-yaml", border=False):
        text = st.text_area("Levels, innermost first", written, height=180)
        st.caption("Bandwidth in bytes per second, latency in seconds, memory in bytes.")
        if st.form_submit_button("Use this cluster", type="primary"):
            read_cluster(text)
            state.put(Param.CLUSTER, text)
            st.rerun()


@guarded
def _by_form(now: Cluster) -> None:
    inner = now.levels[0]
    outer = now.levels[1] if len(now.levels) > 1 else Level(1, 1.25e9)
    with st.form("cluster-form", border=False):
        left, right = st.columns(2)
        devices = left.number_input("Devices per server", 1, MOST, inner.count)
        inside = left.number_input("Link inside, GB/s", 0.001, None, inner.bandwidth / 1e9)
        name = left.text_input("Device", now.device.name, max_chars=60)
        servers = right.number_input("Servers", 1, MOST, outer.count)
        between = right.number_input("Link between, GB/s", 0.001, None, outer.bandwidth / 1e9)
        memory = right.number_input(
            "Memory, GiB (0 = not checked)", 0.0, None, (now.device.memory or 0.0) / 2**30
        )
        speed = left.number_input(
            "Speed", 0.01, None, now.device.speed, help="2 halves every compute time"
        )
        price = right.number_input("Price per hour", 0.0, None, now.device.price or 0.0, help=PRICE)
        watts = left.number_input(
            "Power at work, W", 0.0, None, now.device.watts or 0.0, help=WATTS
        )
        idle = right.number_input(
            "Power while it waits, W", 0.0, None, now.device.idle_watts or 0.0, help=WATTS
        )
        record = record_fields(now.device.record)
        if not st.form_submit_button("Use this cluster", type="primary"):
            return
    levels = [Level(int(devices), inside * 1e9, inner.latency, inner.cores)]
    if servers > 1:
        levels.append(Level(int(servers), between * 1e9, outer.latency, sites=outer.sites))
    known = memory * 2**30 or None, speed, watts or None, idle or None
    device = Device(name.strip() or "device", *known, record, price or None)
    state.put(Param.CLUSTER, write_cluster(Cluster(tuple(levels), device)))
    st.rerun()
