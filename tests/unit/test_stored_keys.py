"""Stored JSON keeps its keys where a field of the code has a newer name."""

from typing import Any

import pytest

from backend.codec import from_json, from_plain, to_json, to_plain
from backend.pipeline.shape import Shape
from backend.planning.plan import Partition, Plan, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import MessageOverhead, ModelGraph, Profile, TiedWeight

LAYERS = tuple(Layer(name, "Linear", 1.0, 2.0, 8, 4, out_of_place_update=0.5) for name in "ab")
GRAPH = ModelGraph(LAYERS, ((0, 1),), tied_weights=(TiedWeight(0, (1,), "w", 4),))
KEPT = [
    (Plan("even", Partition((Stage(0, 2, (0,)),)), "afp", 4, num_pipelines=2), {"lanes": 2}),
    (Shape((1, 1), 8, 2, num_pipelines=2), {"microbatches": 8, "lanes": 2}),
    (LAYERS[0], {"renewal": 0.5}),
    (GRAPH, {"ties": [{"owner": 0, "readers": [1], "weight": "w", "bytes": 4}]}),
    (
        Profile("p", GRAPH, 1, message_overhead=MessageOverhead(1, 2, 3, 4)),
        {"handling": {"posting": 1, "posting_byte": 2, "taking": 3, "taking_byte": 4}},
    ),
]


@pytest.mark.parametrize(("value", "kept"), KEPT, ids=lambda case: type(case).__name__)
def test_a_stored_value_has_the_keys_that_it_always_had(value: Any, kept: dict[str, Any]) -> None:
    stored = to_plain(type(value), value)
    assert {key: stored[key] for key in kept} == kept
    assert from_plain(type(value), stored) == value
    assert from_json(type(value), to_json(type(value), value)) == value
