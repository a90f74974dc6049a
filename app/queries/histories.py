"""What runs of a model took to a target, read once for all who look within some seconds."""

import streamlit as st

from app import services
from backend.comparison.to_target import Histories, Target

FRESH = 10.0  # seconds


def histories_of(definition_id: int, target: Target) -> Histories:
    """By update rule; empty where no run came to the target."""
    return _histories(services.backend().settings.sql_url, definition_id, target)


@st.cache_resource(show_spinner=False, max_entries=64, ttl=FRESH)
def _histories(database: str, definition_id: int, target: Target) -> Histories:
    return services.backend().runs.learnt(definition_id, target)
