"""The choice among alternatives, whose labels change while planners search."""

import pytest

from app.components.plan import alternatives
from app.session.state import Param


def test_a_label_that_is_no_more_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser sends the label that it has, which a planner that found another plan has changed
    meanwhile."""
    session = {alternatives.KEY: "**16** · Best"}
    put: dict[Param, object] = {}
    monkeypatch.setattr(alternatives.st, "session_state", session)
    monkeypatch.setattr(alternatives.state, "put", put.__setitem__)
    alternatives._choose()
    assert put == {}
    session[alternatives.KEY] = "pipedream"
    alternatives._choose()
    by_hand = (Param.CUT, Param.CODECS, Param.PLAN)
    assert put == {Param.PLANNER: "pipedream"} | dict.fromkeys(by_hand)
