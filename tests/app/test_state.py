"""URL parameters: what is not what it should be counts as absent, and never raises."""

import pytest
from streamlit.testing.v1 import AppTest


def numbers() -> None:
    import streamlit as st

    from app.session import state
    from app.session.state import Param

    st.text(str(state.number(Param.ID)))
    st.text(state.text(Param.SCHEDULE, "pipedream"))


def writes() -> None:
    from app.session import state
    from app.session.state import Param

    state.put(Param.BATCH, 8)
    state.put(Param.PLANNER, None)


@pytest.mark.parametrize(
    ("written", "read"),
    [("7", "7"), ("0", "None"), ("-1", "None"), ("seven", "None"), ("", "None"), ("٧", "None")],
)
def test_a_number_is_a_whole_number_above_0(written: str, read: str) -> None:
    page = AppTest.from_function(numbers)
    page.query_params["id"] = written
    assert page.run().text[0].value == read


def test_what_is_absent_has_its_default() -> None:
    page = AppTest.from_function(numbers).run()
    assert [element.value for element in page.text] == ["None", "pipedream"]


def test_writing_none_takes_a_parameter_out() -> None:
    page = AppTest.from_function(writes)
    page.query_params["planner"] = "straight"
    page.run()
    assert "planner" not in page.query_params
    assert page.query_params["batch"] in ("8", ["8"])


def test_a_notice_is_shown_once() -> None:
    def script() -> None:
        import streamlit as st

        from app.session import state

        state.show_notice()
        if st.button("Do it"):
            state.notify("It is done")
            st.rerun()

    page = AppTest.from_function(script).run()
    page.button[0].click().run()
    assert [toast.value for toast in page.toast] == ["It is done"]
    assert not page.run().toast


def test_the_visitors_zone_falls_back_to_utc() -> None:
    def script() -> None:
        import streamlit as st

        from app.session import state

        st.text(str(state.zone()))

    assert AppTest.from_function(script).run().text[0].value == "UTC"
