"""The newest entries of the audit log, and all of them as a file."""

import streamlit as st

from app.components.shell.download import download
from app.components.shell.grid import Column, grid, small, text
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
            text("When", 1.5, lambda e: f":gray[{e.time.astimezone(here):%m-%d %H:%M:%S}]"),
            text("Person", 1.4, lambda e: plain(e.actor)),
            text("Action", 1.0, lambda e: plain(e.action)),
            small("Target", 3.6, lambda e: e.target),
            Column("Outcome", 1.0, _outcome),
        ),
        audit.list(limit=SHOWN),
    )
    download("All as CSV", lambda: csv_of(audit.all()), "audit.csv", "text/csv")


def _outcome(entry: AuditEntry) -> None:
    if entry.outcome is AuditOutcome.DENIED:
        st.badge("denied", color="red")
    else:
        st.markdown(":gray[done]")
