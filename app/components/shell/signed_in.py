"""Who is signed in, in the sidebar of every page, and the way out."""

import streamlit as st

from app import services
from app.formats import plain
from app.gate.rules import SIGN_IN


def signed_in() -> None:
    """The visitor's name with Sign out, below the pages; nothing where nobody signs in."""
    actor = services.visitor().actor
    if actor.person_id is None:
        return
    with st.sidebar, st.container(horizontal=True, vertical_alignment="center", key="signed-in"):
        st.caption(plain(actor.name))
        pressed = st.button("Sign out", icon=":material/logout:", type="tertiary")
    if pressed:
        services.sign_out()
        to_sign_in = f"<script>window.location.assign('{SIGN_IN}')</script>"
        st.html(to_sign_in, unsafe_allow_javascript=True)
        st.stop()
