"""That a run did not use the links that its plan was predicted for, before figures are compared."""

import streamlit as st

from app.differences import other_links_words
from app.formats import plain, sentence
from backend.comparison.shared_cores import Expectation


def other_links_view(found: Expectation) -> None:
    """Nothing where the run has a machine for each of its plan's."""
    if found.other_links is not None:
        said = sentence(f"{other_links_words(found.other_links)}.")
        st.info(plain(said), icon=":material/lan:")
