"""Profile: empty, the newest, one by its id, one that is not there, the way to a plan."""

from app.state import Page
from backend.bootstrap import Backend
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, figures_of, param, text_of


def test_without_profiles_the_page_leads_to_the_models(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.PROFILE)
    assert "No profile yet" in text_of(page)
    assert not page.exception


def test_the_newest_profile_is_shown_with_its_figures(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PROFILE)
    shown = figures_of(page)
    assert page.title[0].value == "vgg\\_digits"
    assert shown["Forward"] == ("10.2 ms", "sum of layers")
    assert shown["Whole model"] == ("28.3 ms", "layers +5.3 %")
    assert shown["Parameters"][0] == "2.38 MiB"
    assert len(page.dataframe[0].value) == 16


def test_a_profile_is_chosen_by_its_id(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("mlp")
    small = backend.profiles.add(seed.a_profile(2), definition.id)
    backend.profiles.add(seed.a_profile(6), definition.id)
    page = open_page(Page.PROFILE, id=small.id)
    assert len(page.dataframe[0].value) == 8
    page.selectbox[0].select_index(0).run()
    assert len(page.dataframe[0].value) == 16
    assert param(page, "id") != str(small.id)


def test_an_unknown_profile_is_said_calmly(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PROFILE, id=99)
    assert "profile 99" in page.error[0].value
    assert not page.exception


def test_notes_of_the_profiler_are_shown(backend: Backend, open_page: Open) -> None:
    from dataclasses import replace

    definition = backend.definitions.add_zoo("mlp")
    noted = replace(seed.a_profile(2), notes=("block 3 could not be cut",))
    backend.profiles.add(noted, definition.id)
    assert "block 3 could not be cut" in text_of(open_page(Page.PROFILE))


def test_plan_it_opens_the_plan_of_this_profile(seeded: seed.Seeded, open_page: Open) -> None:
    page = button(open_page(Page.PROFILE), "Plan it").click().run()
    assert page.title[0].value.startswith("vgg\\_digits on 2")
    assert param(page, "profile") == str(seeded.profile)
