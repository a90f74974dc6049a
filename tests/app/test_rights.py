"""What people may on each page: a viewer's buttons cannot be pressed; account and people."""

import pytest
from streamlit.testing.v1 import AppTest

from app.session.state import Page
from backend.bootstrap import Backend
from backend.people.person import Scope
from backend.people.rights import Role
from backend.services.people.team import TeamService, TokenService
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of
from tests.app.test_projects import join, signed_in


@pytest.fixture
def viewer(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_in(backend, monkeypatch, join(backend, "Vera", Role.VIEWER))


@pytest.fixture
def admin(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_in(backend, monkeypatch, join(backend, "Ada", Role.ADMIN))


def barred(page: AppTest) -> set[str]:
    """The buttons that cannot be pressed, each of which must say why."""
    off = [found for found in page.button if found.disabled]
    assert all("right to edit" in (found.help or "") for found in off)
    return {found.label for found in off}


@pytest.mark.parametrize(
    ("page", "labels"),
    [
        (Page.START, {"Run the example"}),
        (Page.MODELS, {"Profile", "Add", "Add model"}),
        (Page.LAUNCH, {"Start run"}),
        (Page.NODES, {"Measure links"}),
    ],
    ids=lambda value: getattr(value, "path", ""),
)
def test_a_viewer_cannot_press_what_changes_something(
    seeded: seed.Seeded, viewer: None, open_page: Open, page: Page, labels: set[str]
) -> None:
    shown = open_page(page)
    assert labels <= barred(shown)
    assert not shown.exception
    assert not shown.error


def test_a_viewer_looks_at_a_run_and_leaves_it_as_it_is(
    seeded: seed.Seeded, viewer: None, open_page: Open
) -> None:
    shown = open_page(Page.RUN, id=seeded.succeeded)
    assert {"Star", "Clone"} <= barred(shown)
    assert "Measured above predicted" in text_of(shown)
    listed = open_page(Page.RUNS)
    listed.checkbox(key=f"pick-{seeded.succeeded}").check().run()
    labels = {found.label for found in listed.button}
    assert "Compare" in labels
    assert not labels & {"Star", "Cancel", "Retry", "Delete"}
    assert "right to edit" in text_of(listed)


def test_an_editor_presses_them_all(
    backend: Backend,
    seeded: seed.Seeded,
    open_page: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signed_in(backend, monkeypatch, join(backend, "Ed", Role.EDITOR))
    assert not barred(open_page(Page.MODELS))
    assert not barred(open_page(Page.RUN, id=seeded.succeeded))


@pytest.mark.parametrize("tokens", [0, 1, 30])
def test_the_account_with_no_token_one_and_many(
    backend: Backend,
    open_page: Open,
    monkeypatch: pytest.MonkeyPatch,
    tokens: int,
) -> None:
    ada = signed_in(backend, monkeypatch, join(backend, "Ada", Role.ADMIN))
    for number in range(tokens):
        ada.tokens.add(f"token {number}", Scope.READ, 30)
    shown = open_page(Page.ACCOUNT)
    assert not shown.exception
    assert ("No token yet." in text_of(shown)) is (tokens == 0)
    assert sum(found.label == "Revoke" for found in shown.button) == tokens
    assert button(shown, "Sign out")


def test_a_new_token_is_shown_once(admin: None, open_page: Open) -> None:
    shown = open_page(Page.ACCOUNT)
    shown.text_input[0].set_value("cluster job")
    button(shown, "Create token").click().run()
    assert "not shown again" in text_of(shown)
    secret = shown.code[0].value
    assert secret not in "".join(found.value for found in shown.run().code)


@pytest.mark.parametrize("others", [0, 1, 40])
def test_people_alone_two_and_many(
    backend: Backend, admin: None, open_page: Open, others: int
) -> None:
    for number in range(others):
        join(backend, f"person {number}", Role.EDITOR)
    shown = open_page(Page.PEOPLE)
    assert not shown.exception
    assert sum(found.label == "New link" for found in shown.button) == others + 1
    assert "Audit log" in text_of(shown)


def test_people_are_invited_by_a_link(admin: None, open_page: Open) -> None:
    shown = open_page(Page.PEOPLE)
    shown.text_input[0].set_value("Grace")
    button(shown, "Invite").click().run()
    assert "Grace" in text_of(shown)
    assert "/welcome?link=" in shown.code[0].value


@pytest.mark.parametrize(
    ("page", "service"), [(Page.ACCOUNT, TokenService), (Page.PEOPLE, TeamService)]
)
def test_a_fault_of_ours_is_an_apology(
    admin: None,
    open_page: Open,
    page: Page,
    service: type,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> object:
        raise ZeroDivisionError("a detail that is nobody's business")

    monkeypatch.setattr(service, "list", broken)
    shown = open_page(page)
    assert "because of an error in Stageflow" in shown.error[0].value
    assert "nobody's business" not in text_of(shown)
