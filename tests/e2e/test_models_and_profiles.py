"""Files of every form dropped onto the page, and a model's graph opened, searched, compared."""

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from backend.profiles.crossing import Crossing, TiedWeight
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from tests.app import seed
from tests.e2e.conftest import keep_screenshot, settled
from tests.e2e.tour import dashboard

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2}
DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  return data;
}"""


def transformer(num_blocks: int = 12) -> Profile:
    """A language model of blocks with residuals, whose first and last layer share a weight."""
    parts = ("ln", "attn", "add", "mlp", "add_2")
    names = ["wte", *(f"h.{i}.{part}" for i in range(num_blocks) for part in parts), "lm_head"]
    heavy = ("attn", "mlp")
    times = [3e-3 if name.endswith(heavy) else 1e-3 for name in names]
    layers = tuple(
        Layer(name, "Linear", time, 2 * time, 2**16, 2**18)
        for name, time in zip(names, times, strict=True)
    )
    last = len(names) - 1
    edges = {(i, i + 1) for i in range(last)} | {(0, last)}
    edges |= {(i, i + 3) for i in range(0, last - 3, 5)} | {
        (i, i + 2) for i in range(3, last - 2, 5)
    }
    crossings = (*(Crossing(a, (b,), 2**16) for a, b in edges if (a, b) != (0, last)),)
    crossings += (Crossing(0, (last,), 2**18),)
    graph = ModelGraph(
        layers, tuple(sorted(edges)), crossings, (TiedWeight(0, (last,), "wte.weight", 2**18),)
    )
    return Profile("gpt2", graph, 4, repetitions=20)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("home")
    with seed.settings(home):
        backend = seed.fresh()
        definition = backend.definitions.add_zoo("gpt2")
        backend.profiles.add(transformer(), definition.id)
        slower = tuple(
            replace(layer, forward=1.5 * layer.forward) for layer in transformer().layers
        )
        graph = replace(transformer().graph, layers=slower)
        backend.profiles.add(replace(transformer(), graph=graph), definition.id)
        backend.close()
    with dashboard(home) as address:
        yield address


def dropped(page: Page, name: str, text: str) -> None:
    """As a person drops a file onto the field."""
    data = page.evaluate_handle(DROP, [name, text])
    field = settled(page).get_by_test_id("stFileUploaderDropzone")
    field.dispatch_event("dragenter", {"dataTransfer": data})
    field.dispatch_event("drop", {"dataTransfer": data})
    expect(settled(page).get_by_text(name).first).to_be_visible()
    settled(page).get_by_role("button", name="Add model").click()


def test_a_config_is_dropped_described_and_asked_to_be_profiled(page: Page, url: str) -> None:
    page.goto(f"{url}/models")
    dropped(page, "config.json", json.dumps(CONFIG))
    rows = settled(page).get_by_role("link", name="gpt2", exact=True)
    expect(rows).to_have_count(2)  # one was there from the start; the newest comes first
    rows.first.click()
    expect(settled(page).get_by_text("causal-lm").first).to_be_visible()
    settled(page).get_by_label("length", exact=True).fill("16")
    keep_screenshot(page, "12-model")
    settled(page).get_by_role("button", name="Start profiling").click()
    expect(page).to_have_url(re.compile("/run"))


def test_weights_and_programs_are_taken_and_other_files_refused(
    page: Page, url: str, tmp_path: Path
) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    weights = tmp_path / "tiny.safetensors"
    weights.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    page.goto(f"{url}/models")
    settled(page).locator("input[type=file]").set_input_files(weights)
    expect(settled(page).get_by_text("tiny.safetensors")).to_be_visible()
    settled(page).get_by_role("button", name="Add model").click()
    expect(settled(page).get_by_role("link", name="tiny")).to_be_visible()
    broken = tmp_path / "broken.pt2"
    broken.write_bytes(b"PK no zip")
    settled(page).locator("input[type=file]").set_input_files(broken)
    expect(settled(page).get_by_text("broken.pt2")).to_be_visible()
    settled(page).get_by_role("button", name="Add model").click()
    expect(page.get_by_text(re.compile("not a program of torch.export")).first).to_be_visible()


def boxes(page: Page) -> Locator:
    return page.locator("g.box")


def test_the_graph_opens_closes_zooms_and_finds(page: Page, url: str) -> None:
    page.goto(f"{url}/profile?id=1")
    settled(page).get_by_role("button", name="Close all").click()
    expect(boxes(page)).to_have_count(3)
    expect(page.locator("path.tie")).to_have_count(1)
    settled(page).get_by_role("button", name="Open h", exact=True).first.click()
    expect(boxes(page)).to_have_count(3 + 12)
    settled(page).get_by_role("button", name="Open h.3", exact=True).first.press("Enter")
    expect(boxes(page)).to_have_count(3 + 12 + 5)
    settled(page).get_by_role("button", name=re.compile(r"^h\.3\.attn,")).click()
    expect(page.get_by_role("heading", name="h.3.attn")).to_be_visible()
    world = page.locator(".view svg > g").first
    before = world.get_attribute("transform")
    graph = page.get_by_test_id("stBidiComponentIsolated")
    graph.get_by_role("button", name="Zoom in").click()
    assert world.get_attribute("transform") != before
    graph.get_by_role("button", name="Show the whole model").click()
    keep_screenshot(page, "13-graph")
    with page.expect_download() as download:
        graph.get_by_role("button", name="Download the picture").click()
    picture = Path(download.value.path()).read_text()
    assert picture.startswith("<svg")
    assert "h.3" in picture
    settled(page).get_by_role("combobox", name=re.compile("Find a layer")).fill("h.7.mlp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="h.7.mlp")).to_be_visible()
    expect(boxes(page)).to_have_count(3 + 12 + 5 + 5)


def test_profiles_are_compared_and_taken_away(page: Page, url: str) -> None:
    page.goto(f"{url}/profile?id=1")
    expect(settled(page).get_by_text("Layers that agree")).to_be_visible()
    expect(page.get_by_text("0 of 24").first).to_be_visible()
    settled(page).get_by_role("button", name="Download", exact=False).first.click()
    for label, start in (("JSON", "{"), ("CSV", "layer,kind"), ("graph.txt", "node1 --")):
        with page.expect_download() as download:
            page.get_by_role("button", name=re.compile(f"^{label}:")).click()
        assert Path(download.value.path()).read_text().startswith(start)
    page.keyboard.press("Escape")
    keep_screenshot(page, "14-profiles-compared")
