"""How the sites of a cluster learn from each other: asked as a rule with its settings."""

import streamlit as st

from app.session.state import Param, bound
from backend.planning.sites import SITE_RULES, Sites

HELP = (
    "Where the cluster has a level of sites: each has a pipeline with weights of its own, and they "
    "exchange by this rule. Empty: one plan over all devices.\n\n"
    + "\n".join(
        f"- `{Sites(name).words}` **{rule.title}**: {rule.note}"
        for name, rule in SITE_RULES.items()
    )
)


def sites_field() -> str:
    """The rule as it is written, which `Question` reads."""
    written = st.text_input(
        "Between sites",
        placeholder="one plan over all devices",
        help=HELP,
        **bound(Param.SITES),
    )
    return written or ""
