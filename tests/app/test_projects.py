"""Projects on the pages: chosen in the sidebar, made, filled, limited; each where one may."""

import pytest
from streamlit.testing.v1 import AppTest

from app.session.state import Key, Page
from backend.bootstrap import Backend
from backend.people.person import Person
from backend.people.project import DEFAULT_PROJECT, Project, Quota
from backend.people.rights import Role
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of

PASSWORD = "nine quiet stages"


@pytest.fixture
def vision(backend: Backend) -> Project:
    return backend.projects.add("Vision")


def signed_in(backend: Backend, monkeypatch: pytest.MonkeyPatch, person: Person) -> Backend:
    """Pages are in this person's name from now on; `Backend` in theirs."""
    monkeypatch.setenv("STAGEFLOW_SIGN_IN", "accounts")
    secret = backend.accounts.sign_in(person.name, PASSWORD)
    monkeypatch.setattr(
        "streamlit.runtime.context.ContextProxy.cookies", property(lambda _: {"stageflow": secret})
    )
    return backend.acting(person.actor())


def join(backend: Backend, name: str, role: Role) -> Person:
    _, link = backend.team.add(name, role)
    found = backend.accounts.person(backend.accounts.accept(link, "", PASSWORD))
    assert found
    return found[0]


def chooser(page: AppTest) -> list[str]:
    return [box.label for box in page.sidebar.selectbox]


def test_one_project_is_nothing_to_choose(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.RUNS)
    assert chooser(page) == []
    assert "project" not in page.query_params


def test_lists_follow_the_chosen_project_and_links_name_it(
    backend: Backend, seeded: seed.Seeded, vision: Project, open_page: Open
) -> None:
    page = open_page(Page.RUNS)
    assert chooser(page) == ["Project"]
    assert "vgg_digits" in text_of(page) or page.sidebar.selectbox[0].value == DEFAULT_PROJECT
    page.sidebar.selectbox[0].select(vision.id).run()
    assert page.query_params["project"] in (str(vision.id), [str(vision.id)])
    assert page.session_state[Key.PROJECT.value] == vision.id
    assert "No run yet" in text_of(page)
    page.switch_page(Page.MODELS.value).run()
    assert "No model yet" in text_of(page)
    opened = open_page(Page.RUN, id=seeded.failed, project=vision.id)  # a link leads there still
    assert "loss is nan" in text_of(opened)


def test_a_link_to_a_project_that_is_not_there_shows_ones_own(
    backend: Backend, seeded: seed.Seeded, vision: Project, open_page: Open
) -> None:
    page = open_page(Page.RUNS, project=999)
    assert page.sidebar.selectbox[0].value == DEFAULT_PROJECT
    assert not page.exception


def test_a_project_is_made_filled_and_limited(
    backend: Backend, vision: Project, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in(backend, monkeypatch, join(backend, "Ada", Role.ADMIN))
    join(backend, "Gil", Role.GUEST)
    page = open_page(Page.PROJECTS)
    page.text_input[0].set_value("Speech")
    button(page, "Create project").click().run()
    speech = backend.projects.named("speech")
    assert "Speech" in text_of(page)
    page.text_input[0].set_value("gil")
    button(page, "Add").click().run()
    (member,) = backend.projects.members(speech.id)
    assert (member.name, member.role) == ("Gil", Role.EDITOR)
    page.number_input[0].set_value(2)
    button(page, "Set limits").click().run()
    assert backend.projects.get(speech.id).quota == Quota(running=2)
    button(page, "Archive").click().run()
    assert backend.projects.get(speech.id).archived


def test_a_viewer_sees_what_they_may_not_change_disabled(
    backend: Backend, vision: Project, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    gil = join(backend, "Gil", Role.GUEST)
    backend.projects.set_role(vision.id, "Gil", Role.VIEWER)
    signed_in(backend, monkeypatch, gil)
    page = open_page(Page.PROJECTS, id=vision.id)
    assert not page.exception
    assert "Vision" in text_of(page)
    for label in ("Set limits", "Set retention", "Rename", "Archive"):
        assert button(page, label).disabled
    foreign = open_page(Page.PROJECTS, id=DEFAULT_PROJECT)
    missing = open_page(Page.PROJECTS, id=999)
    assert "No project 1**" in text_of(foreign)
    assert "No project 999**" in text_of(missing)
