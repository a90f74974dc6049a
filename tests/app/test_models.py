"""Models: empty, one from the zoo, uploads of every form, bad ones, one model's own page."""

import json
import struct
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.cluster import Device
from backend.profiles.document import write_profile
from backend.profiles.graph_txt import write_graph
from backend.runs.request.spec import ProfileSpec
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, param, text_of

CONFIG = json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}).encode()
HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
WEIGHTS = struct.pack("<Q", len(HEADER)) + HEADER + bytes(4)
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
    assert "Choose a file" in page.warning[0].value


def test_a_model_has_a_page_with_its_file_and_parameters(backend: Backend, open_page: Open) -> None:
    kept = backend.definitions.add_zoo("gpt2")
    page = open_page(Page.MODELS, id=kept.id)
    assert kept.digest in text_of(page)
    assert "def model(" in page.code[0].value
    (parameters,) = [table.value for table in page.dataframe]
    assert list(parameters["parameter"])[:2] == ["tokens", "width"]
    fields = {field.label: field.value for field in page.number_input}
    assert fields["depth"] == 12
    assert isinstance(fields["dropout"], float)


def test_a_config_is_described_and_profiled_with_its_parameters(
    backend: Backend, open_page: Open
) -> None:
    upload(open_page(Page.MODELS), "config.json", CONFIG)
    (kept,) = backend.definitions.list()
    assert kept.label == "gpt2@1"
    page = open_page(Page.MODELS, id=kept.id)
    assert "causal-lm" in text_of(page)
    page.number_input(key=f"parameter-{kept.id}-length").set_value(16)
    next(field for field in page.text_input if field.label == "Further sizes").set_value("1, 4")
    page = button(page, "Start profiling").click().run()
    (run,) = backend.runs.list().runs
    assert run.spec == ProfileSpec(kept.id, parameters={"length": 16}, further=(1, 4))


def test_weights_are_kept_apart_from_models(backend: Backend, open_page: Open) -> None:
    page = upload(open_page(Page.MODELS), "tiny.safetensors", WEIGHTS)
    assert "No model yet" in text_of(page)
    (kept,) = backend.definitions.weights()
    page = open_page(Page.MODELS, id=kept.id)
    assert "tensors" in text_of(page)
    assert not [found for found in page.button if found.label == "Start profiling"]


def test_a_clone_begins_under_its_own_name(backend: Backend, open_page: Open) -> None:
    kept = backend.definitions.add("net.py", GOOD)
    page = open_page(Page.MODELS, id=kept.id)
    page.button(key=f"clone-{kept.id}").click().run()
    assert {found.label for found in backend.definitions.list()} == {"net@1", "net copy@1"}


def test_what_a_run_needs_is_not_deleted_and_says_why(backend: Backend, open_page: Open) -> None:
    kept = backend.definitions.add("net.py", GOOD)
    backend.runs.submit(ProfileSpec(kept.id), "measure it")
    page = open_page(Page.MODELS, id=kept.id)
    page = page.button(key=f"delete-{kept.id}").click().run()
    assert "run" in page.error[0].value
    assert backend.definitions.list()


def test_what_nobody_needs_is_deleted(backend: Backend, open_page: Open) -> None:
    kept = backend.definitions.add("net.py", GOOD)
    page = open_page(Page.MODELS, id=kept.id)
    page = page.button(key=f"delete-{kept.id}").click().run()
    assert not page.exception
    assert not backend.definitions.list()


def test_a_profile_from_elsewhere_is_imported(backend: Backend, open_page: Open) -> None:
    """A graph.txt says neither its model nor its samples: it is named after the model, and the
    samples are asked for."""
    kept = backend.definitions.add_zoo("vgg_digits")
    page = open_page(Page.MODELS, id=kept.id)
    text = write_graph(seed.a_profile())
    page.file_uploader[0].upload("graph.txt", text.encode(), "text/plain").run()
    assert button(page, "Import").disabled
    assert "does not say" in button(page, "Import").help
    samples = [field for field in page.number_input if field.label == "Samples per microbatch"]
    samples[-1].set_value(32).run()
    button(page, "Import").click().run()
    (stored,) = backend.profiles.list()
    found = stored.profile
    assert (stored.definition_id, found.name, found.microbatch) == (kept.id, "vgg_digits", 32)
    assert [layer.kind for layer in found.layers] == [
        layer.kind for layer in seed.a_profile().layers
    ]
    assert page.title[0].value == "vgg\\_digits"


@pytest.mark.parametrize("where", [Page.START, Page.PROFILE, Page.PLAN])
def test_a_profile_is_imported_where_it_is_needed(
    backend: Backend, open_page: Open, where: Page
) -> None:
    """Its model is chosen by its name, here from the zoo; then the page shows it."""
    page = open_page(where)
    data = write_profile(seed.a_profile())
    page.file_uploader[0].upload("mine.json", data, "application/json").run()
    button(page, "Import").click().run()
    assert not page.exception
    (stored,) = backend.profiles.list()
    assert backend.definitions.get(stored.definition_id).name == "vgg_digits"
    assert stored.profile == seed.a_profile()
    opened = "id" if where is Page.PROFILE else "profile"
    assert param(page, opened) == str(stored.id)


def test_a_profile_that_is_kept_is_opened_and_not_measured_again(
    backend: Backend, open_page: Open
) -> None:
    kept = backend.definitions.add("net.py", GOOD)
    versions = {"python": "3", "torch": "2", "stageflow": "1"}
    backend.nodes.beat("node-1", (Device("cpu"),), versions)
    stored = backend.profiles.add(replace(seed.a_profile(), versions=versions), kept.id)
    page = button(open_page(Page.MODELS, id=kept.id), "Start profiling").click().run()
    assert page.title[0].value == "vgg\\_digits"
    assert not backend.runs.list().total
    assert param(page, "id") == str(stored.id)


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
