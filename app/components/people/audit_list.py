"""The newest entries of the audit log, and all of them as a file."""

import streamlit as st

from app.components.shell.grid import Column, grid
from app.exports.audit import csv_of
from app.formats import plain
from app.session.state import zone
from backend.people.audit import AuditEntry, AuditOutcome
from backend.services.people.access import AuditService

SHOWN = 50


def audit_list(audit: AuditService) -> None:
    """A row per entry; refusals stand out."""
    here = zone()
    grid(
        "audit",
        (
            Column(
                "When",
                1.5,
                lambda e: st.markdown(f":gray[{e.time.astimezone(here):%m-%d %H:%M:%S}]"),
            ),
            Column("Who", 1.4, lambda e: st.markdown(plain(e.actor))),
            Column("Did", 1.0, lambda e: st.markdown(plain(e.action))),
            Column("To", 3.6, lambda e: st.markdown(f":small[{plain(e.target)}]")),
            Column("Outcome", 1.0, _outcome),
        ),
        audit.list(limit=SHOWN),
    )
    st.download_button(
        "All as CSV",
        lambda: csv_of(audit.all()),
        file_name="audit.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
    )


def _outcome(entry: AuditEntry) -> None:
    if entry.outcome is AuditOutcome.DENIED:
        st.badge("denied", color="red")
    else:
        st.markdown(":gray[done]")
