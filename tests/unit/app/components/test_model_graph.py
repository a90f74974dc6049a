"""What the picture of a model is told."""

from dataclasses import replace

from app.charts.model.model_picture import picture
from app.components.model.model_graph import drawn, facts
from backend.profiles.crossing import Crossing, TiedWeight
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

NAMES = ("wte", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "head")


def model() -> Profile:
    layers = tuple(Layer(name, "Linear", 1e-3, 3e-3, 1024, 2048, flops=2e6) for name in NAMES)
    edges = (*((i, i + 1) for i in range(5)), (0, 5))
    crossings = (*(Crossing(i, (i + 1,), 1024) for i in range(5)), Crossing(0, (5,), 2048))
    tied_weights = (TiedWeight(0, (5,), "wte.weight", 2048),)
    return Profile("gpt", ModelGraph(layers, edges, crossings, tied_weights), 4)


def test_a_closed_module_is_the_sum_of_its_layers() -> None:
    found = model()
    data = drawn(found, picture(found, frozenset({"h:1"})), "model")
    boxes = {box["path"]: box for box in data["boxes"]}
    assert list(boxes) == ["wte", "h", "h.0", "h.1", "head"]
    assert boxes["h"]["open"]
    assert (boxes["h.0"]["name"], boxes["h.0"]["remark"]) == ("0", "2\u00a0layers")
    assert boxes["h.0"]["bars"] == [0.25, 0.75]
    assert boxes["wte"]["bars"] == [0.125, 0.375]
    told = dict(boxes["h.0"]["facts"])
    assert told["Forward"] == "2.00\u00a0ms"
    assert told["Operations"] == "4.00\u00a0MFLOP"
    assert told["Share of the model's time"] == "33.3\u00a0%"
    assert [is_tie for _, is_tie in data["lines"]].count(True) == 1


def test_a_layer_tells_what_it_shares_and_what_a_cut_sends() -> None:
    found = model()
    told = dict(facts(found, range(5, 6)))
    assert told["Shares wte.weight with"] == "wte"
    assert dict(facts(found, range(1)))["A cut behind it sends"] == "3.00\u00a0KiB"


def test_what_was_not_measured_is_left_out() -> None:
    found = model()
    plain = replace(found.layers[0], flops=None, update=0.0)
    told = dict(facts(replace(found, graph=ModelGraph.chain((plain,))), range(1)))
    assert not {"Kept for backward", "Operations"} & told.keys()


def test_the_layer_that_is_sought_is_told() -> None:
    found = model()
    data = drawn(found, picture(found, frozenset()), "model", "layer 3")
    assert data["chosen"] == "layer 3"
    assert {box["key"] for box in data["boxes"]} == {"layer 0", "h:1", "layer 5"}
