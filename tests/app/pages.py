"""How the tests look at a page."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

from app.server.searchers import QUICK, THOROUGH
from app.session.state import Key


def button(page: AppTest, label: str) -> Button:
    """The one button with this label."""
    (found,) = [button for button in page.button if button.label == label]
    return found


def text_of(page: AppTest) -> str:
    """Everything that is written on the page."""
    kinds = (page.title, page.markdown, page.caption, page.error, page.warning, page.info)
    lines = [element.value for kind in kinds for element in kind]
    return "\n".join([*lines, *(element.value for element in page.success)])


def figures_of(page: AppTest) -> dict[str, tuple[str, str]]:
    """Label -> (value, comparison) of the cards, with plain spaces."""
    return {
        metric.label: (_spaced(metric.value), _spaced(metric.delta or "")) for metric in page.metric
    }


def _spaced(text: str) -> str:
    return text.replace("\u00a0", " ")


def param(page: AppTest, name: str) -> str:
    """A parameter of the page's URL."""
    found = page.query_params[name]
    return found if isinstance(found, str) else found[0]


def searched(page: AppTest, seconds: float) -> None:
    """Wait for the page's searches so long at most: drawing it meanwhile would slow them down."""
    _, searches = page.session_state[Key.PLANNING.value]
    for search in searches:
        search.wait(seconds)


@contextmanager
def no_searcher() -> Iterator[None]:
    """Inside, every search waits for its turn."""
    with ExitStack() as held:
        for searchers in (QUICK, THOROUGH):
            for _ in range(searchers.most):
                held.callback(searchers._free.put, searchers._free.get(timeout=240))
        yield
