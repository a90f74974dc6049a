"""Profile: empty, the newest, one by its id, one that is not there, the way to a plan."""

from dataclasses import replace

from streamlit.testing.v1 import AppTest

from app.session.state import Page
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
    next(box for box in page.selectbox if box.label == "Profile").select_index(0).run()
    assert len(page.dataframe[0].value) == 16
    assert param(page, "id") != str(small.id)


def test_an_unknown_profile_is_said_calmly(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PROFILE, id=99)
    assert "o profile 99" in text_of(page)
    assert not page.exception


def test_notes_of_the_profiler_are_shown(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("mlp")
    noted = replace(seed.a_profile(2), notes=("block 3 could not be cut",))
    backend.profiles.add(noted, definition.id)
    assert "block 3 could not be cut" in text_of(open_page(Page.PROFILE))


def test_plan_it_opens_the_plan_of_this_profile(seeded: seed.Seeded, open_page: Open) -> None:
    page = button(open_page(Page.PROFILE), "Plan it").click().run()
    assert page.title[0].value.startswith("vgg\\_digits on 2")
    assert param(page, "profile") == str(seeded.profile)


def test_a_partial_profile_says_so(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("mlp")
    backend.profiles.add(replace(seed.a_profile(2), is_partial=True, repetitions=3), definition.id)
    assert "stopped after 3" in text_of(open_page(Page.PROFILE))


def test_a_profile_of_a_busy_machine_can_be_measured_again(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    assert not [each for each in open_page(Page.PROFILE).button if each.label == "Profile again"]
    busy = replace(seed.a_profile(2), cores_taken=0.4)
    kept = backend.profiles.add(busy, seeded.definition, seeded.profiled)
    assert button(open_page(Page.PROFILE, id=kept.id), "Profile again")


def test_the_picture_finds_a_layer_and_opens_its_modules(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PROFILE)
    key = f"profile-{seeded.profile}"
    page.button(key=f"close-{key}").click().run()
    assert page.session_state["opened-modules"][key] == frozenset()
    page.selectbox(key=f"find-{key}").set_value("classifier.1").run()
    assert page.session_state["opened-modules"][key] == {"classifier:13"}
    assert not page.exception


def chart_of(page: AppTest) -> str:
    """The first chart, as its JSON."""
    spec: str = page.get("plotly_chart")[0].proto.spec
    return spec


def test_memory_and_time_are_charts_of_their_own(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PROFILE)
    (measure,) = [group for group in page.button_group if group.key == "layer-measure"]
    before = chart_of(page)
    page = measure.set_value("Memory").run()
    assert not page.exception
    assert ("kept for backward" in chart_of(page), "kept for backward" in before) == (True, False)


def test_profiles_of_one_model_are_compared_layer_by_layer(
    backend: Backend, open_page: Open
) -> None:
    definition = backend.definitions.add_zoo("mlp")
    first = backend.profiles.add(seed.a_profile(2), definition.id)
    backend.profiles.add(replace(seed.a_profile(2), microbatch=32), definition.id)
    page = open_page(Page.PROFILE)
    shown = figures_of(page)
    assert shown["Layers that agree"][0] == "0 of 5"
    assert f"profile {first.id} (microbatch 16) are shown for 32 samples" in text_of(page)
    table = page.dataframe[1].value
    assert set(table["Δ forward, %"].round(6)) == {100.0}


def test_profiles_of_different_models_are_compared_when_asked(
    backend: Backend, open_page: Open
) -> None:
    for name in ("mlp", "vgg_digits"):
        backend.profiles.add(seed.a_profile(2), backend.definitions.add_zoo(name).id)
    page = open_page(Page.PROFILE)
    assert "Layers that agree" not in figures_of(page)
    page = open_page(Page.PROFILE, other=1)
    assert figures_of(page)["Layers that agree"][0] == "5 of 5"
