"""Models of hundreds of layers on the pages Profile and Plan: folded, opened, cut by hand."""

import pytest
from streamlit.testing.v1 import AppTest

from app.session.state import Page
from backend.bootstrap import Backend
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, param, text_of
from tests.unit.app.models import BLOCK, MODELS, transformer

BLOCKS = 40
MODEL = transformer(BLOCKS)


@pytest.fixture
def big(backend: Backend) -> int:
    """The id of a profile with 243 layers in 40 equal blocks."""
    return backend.profiles.add(MODEL, backend.definitions.add_zoo("gpt2").id).id


def opened(page: AppTest, detail: str) -> AppTest:
    """The page with the blocks shown like this."""
    (choice,) = [group for group in page.button_group if group.key == "detail"]
    return choice.set_value(detail).run()


def test_the_profile_is_folded_until_it_is_opened(big: int, open_page: Open) -> None:
    page = open_page(Page.PROFILE, id=big)
    folded = page.dataframe[0].value
    assert list(folded["layer"])[1] == f"model.layers.0 to {BLOCKS - 1}"
    assert list(folded["kind"])[1].replace("\u00a0", " ") == f"{BLOCKS} × {len(BLOCK)} layers"
    assert "243 layers in 4 rows" in text_of(page).replace("\u00a0", " ")
    for detail, rows in (("Blocks", 3 + BLOCKS), ("Layers", len(MODEL.layers))):
        page = opened(page, detail)
        assert not page.exception
        assert len(page.dataframe[0].value) == rows


def test_a_link_opens_the_same(big: int, open_page: Open) -> None:
    page = open_page(Page.PROFILE, id=big, detail="Layers")
    assert len(page.dataframe[0].value) == len(MODEL.layers)
    (zoom,) = page.select_slider
    charts = len(page.get("plotly_chart"))
    zoom.set_range(7, 16).run()
    assert not page.exception
    assert len(page.get("plotly_chart")) == charts + 1  # the whole network, with the window


def test_what_the_link_breaks_is_folded(big: int, open_page: Open) -> None:
    page = open_page(Page.PROFILE, id=big, detail="nonsense")
    assert len(page.dataframe[0].value) == 4
    assert not page.exception


def test_a_layer_within_closed_blocks_is_found(big: int, open_page: Open) -> None:
    page = open_page(Page.PROFILE, id=big)
    key = f"profile-{big}"
    before = page.session_state["opened-modules"][key]
    page.selectbox(key=f"find-{key}").set_value("model.layers.7.mlp.up").run()
    after = page.session_state["opened-modules"][key]
    assert {name.split(":")[0] for name in after - before} >= {"model.layers", "model.layers.7"}
    assert not page.exception


def test_a_small_model_has_nothing_to_open(seeded: seed.Seeded, open_page: Open) -> None:
    for page in (open_page(Page.PROFILE), open_page(Page.PLAN)):
        assert "detail" not in [group.key for group in page.button_group]


def test_the_plan_says_how_blocks_are_shared_over_the_stages(big: int, open_page: Open) -> None:
    page = open_page(
        Page.PLAN, profile=big, planner="even-split", cluster="cluster-a:1", cut="67x1-124x1-243x1"
    )
    (stages,) = [found.value for found in page.dataframe if "blocks" in found.value]
    assert list(stages["blocks"]) == ["11 of 40", "9.5 of 40", "19.5 of 40"]
    page = opened(page, "Layers")
    assert param(page, "cut") == "67x1-124x1-243x1"
    assert not page.exception


def test_every_big_model_is_drawn_in_every_detail(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("gpt2").id
    for model in (MODELS[2], MODELS[5]):
        stored = backend.profiles.add(model, definition)
        for detail in ("Folded", "Blocks", "Layers"):
            for page in (
                open_page(Page.PROFILE, id=stored.id, detail=detail),
                open_page(Page.PLAN, profile=stored.id, planner="even-split", detail=detail),
            ):
                assert not page.exception
                assert not page.error
    assert button(open_page(Page.PROFILE), "Plan it")
