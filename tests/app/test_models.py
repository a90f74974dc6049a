"""Models: empty, one from the zoo, an upload, bad uploads, the way to a profile run."""

from streamlit.testing.v1 import AppTest

from app.state import Page
from backend.bootstrap import Backend
from tests.app.conftest import Open
from tests.app.pages import button, text_of

GOOD = b"from torch import nn\n\ndef model():\n    return nn.Linear(2, 2)\n"


def upload(page: AppTest, name: str, data: bytes) -> AppTest:
    page.file_uploader[0].upload(name, data, "text/x-python")
    return button(page, "Add model").click().run()


def test_without_models_the_page_says_what_to_do(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.MODELS)
    assert "No model yet" in text_of(page)
    assert not page.exception


def test_one_click_adds_a_zoo_model(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.MODELS)
    page.button(key="zoo-vgg_digits").click().run()
    (kept,) = backend.definitions.list()
    assert kept.label == "vgg_digits@1"
    assert "vgg\\_digits" in text_of(page)
    assert "No model yet" not in text_of(page)


def test_an_upload_is_kept_and_its_next_content_is_the_next_version(
    backend: Backend, open_page: Open
) -> None:
    page = upload(open_page(Page.MODELS), "net.py", GOOD)
    page = upload(page, "net.py", GOOD + b"# again\n")
    assert [kept.label for kept in backend.definitions.list()] == ["net@2", "net@1"]
    assert "v2" in text_of(page)


def test_a_file_that_is_no_python_is_refused_with_its_line(
    backend: Backend, open_page: Open
) -> None:
    page = upload(open_page(Page.MODELS), "net.py", b"def model(:\n")
    (fault,) = page.error
    assert "line 1" in fault.value
    assert "A definition is a Python file" in fault.value
    assert not backend.definitions.list()


def test_a_file_without_a_model_is_refused(backend: Backend, open_page: Open) -> None:
    page = upload(open_page(Page.MODELS), "net.py", b"x = 1\n")
    assert "def model" in page.error[0].value.replace("\\", "")


def test_without_a_file_the_button_asks_for_one(backend: Backend, open_page: Open) -> None:
    page = button(open_page(Page.MODELS), "Add model").click().run()
    assert "Choose a Python file" in page.warning[0].value


def test_the_source_can_be_read(backend: Backend, open_page: Open) -> None:
    kept = backend.definitions.add("net.py", GOOD)
    page = open_page(Page.MODELS)
    page.button(key=f"source-{kept.id}").click().run()
    assert page.code[0].value == GOOD.decode().strip()


def test_a_profile_is_asked_for_in_a_form(backend: Backend, open_page: Open) -> None:
    """Its submission is a fragment's rerun, which needs a browser: see tests/e2e."""
    kept = backend.definitions.add("net.py", GOOD)
    page = open_page(Page.MODELS)
    page.button(key=f"profile-{kept.id}").click().run()
    numbers = {field.label: field.value for field in page.number_input}
    assert numbers == {"Samples per microbatch": 16, "Repetitions": 20}
    assert button(page, "Start profiling")


def test_a_zoo_model_that_is_kept_says_so(backend: Backend, open_page: Open) -> None:
    backend.definitions.add_zoo("vgg_digits")
    page = open_page(Page.MODELS)
    assert not [found for found in page.button if found.key == "zoo-vgg_digits"]
    assert [found for found in page.button if found.key == "zoo-mlp"]
