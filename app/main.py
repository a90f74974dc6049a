"""The frame around every page: configuration, style, navigation, the error boundary."""

from pathlib import Path

import streamlit as st

from app import services, state
from app.boundary import boundary
from app.state import Page

STYLE = Path(__file__).parent / "style.css"

SECTIONS = {
    "Prepare": (
        (Page.MODELS, "Models", "deployed_code"),
        (Page.PROFILE, "Profile", "bar_chart"),
        (Page.PLAN, "Plan", "account_tree"),
    ),
    "Runs": (
        (Page.RUNS, "Runs", "history"),
        (Page.RUN, "Run", "monitoring"),
    ),
}


def navigation() -> st.Page:
    """The pages, grouped by what a person is doing, in the order of the work."""
    return st.navigation(
        {
            section: [
                st.Page(
                    page.value,
                    title=title,
                    icon=f":material/{icon}:",
                    url_path=Path(page.value).stem,
                    default=page is Page.MODELS,
                )
                for page, title, icon in pages
            ]
            for section, pages in SECTIONS.items()
        }
    )


def main() -> None:
    """Draw the page that the URL names, once the database has been found in order."""
    st.set_page_config(
        page_title="Stageflow", page_icon=":material/stacked_bar_chart:", layout="wide"
    )
    st.html(STYLE)
    page = navigation()
    with boundary():
        services.backend()
        state.show_notice()
        page.run()


main()
