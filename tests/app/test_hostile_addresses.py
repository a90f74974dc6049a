"""Addresses with anything in them: a page says what is wrong, and has no fault of its own."""

import random
from collections.abc import Iterator

import pytest

from app.session.state import Page, Param
from tests.app import seed
from tests.app.conftest import visit
from tests.app.pages import text_of
from tests.app.test_states import PAGES

VALUES = (
    *("0", "-1", "1", "2", "999999999999999999999", "1" * 5000, "1e308", "nan", "inf", "1.5"),
    *(
        "",
        " ",
        "\0",
        "\N{REPLACEMENT CHARACTER}",
        "٣",
        "½",
        "'; DROP TABLE runs; --",
        "<script>",
        "../../etc",
        "%00",
    ),
    *("null", "true", "a,b,,c", "1,2,3", "1:2:3", "gpipe", "pipedream:gpipe:4", "14x3-20x1"),
    *("2026-01-01", "9999-99-99", "0001-01-01", "train", "failed", "vgg_digits", "plan-1", "local"),
)
ROUNDS = 3
APOLOGY = "because of an error in Stageflow"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with seed.settings(tmp_path_factory.mktemp("addresses"), STAGEFLOW_LEASE="3600"):
        backend = seed.fresh()
        seed.everything(backend)
        backend.close()
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_no_address_is_too_much_for_a_page(home: None, page: Page) -> None:
    """The first round gives every parameter something, the others some of them."""
    for number in range(ROUNDS):
        dice = random.Random(f"{page} {number}")
        names = list(Param) if number == 0 else dice.sample(list(Param), 12)
        given = {name.value: dice.choice(VALUES) for name in names}
        shown = visit(page, **given)
        assert not shown.exception, given
        assert not [box.value for box in shown.error if APOLOGY in box.value], given


@pytest.mark.parametrize(
    ("page", "names", "said"),
    [
        (Page.PLAN, {"profile": "99"}, "o profile 99"),
        (Page.PLAN, {"plan": "x"}, "o plan 'x'"),
        (Page.PLAN, {"planner": "x"}, "o planner 'x'"),
        (Page.SCHEDULES, {"profile": "99"}, "o profile 99"),
        (Page.WHAT_IF, {"profile": "-1"}, "o profile '\\-1'"),
        (Page.RUN, {"id": "x"}, "o run 'x'"),
    ],
)
def test_a_link_to_what_is_not_there_says_so(
    home: None, page: Page, names: dict[str, str], said: str
) -> None:
    """And shows nothing else in its place."""
    shown = visit(page, **names)
    assert said.replace("\\", "") in text_of(shown).replace("\\", "")
    assert not shown.metric
    assert not shown.exception
