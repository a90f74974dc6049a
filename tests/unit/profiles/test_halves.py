"""The half of a layer's backward that gives the gradient of its input."""

import pytest

from backend.profiles.layer import Layer, LayerSums


def layer(weights: int, of_input: float = 0.0, of_weights: float = 0.0) -> Layer:
    halves = {"backward_input": of_input, "backward_weight": of_weights}
    return Layer("l", "Linear", 1.0, 4.0, 8, weights, **halves)


@pytest.mark.parametrize(
    ("one", "half"),
    [
        (layer(8, 1.5, 3.0), 1.5),
        (layer(8, 1.5), 1.5),  # profiles of before have the first half alone
        (layer(8, 0.0, 3.5), 0.0),  # numbers have no gradient: nothing is handed back
        (layer(8), 2.0),
        (layer(0), 4.0),
        (layer(0, 3.9), 3.9),
    ],
)
def test_it_is_what_was_measured_else_half_of_what_has_weights(one: Layer, half: float) -> None:
    assert one.input_half == half


def test_that_of_several_layers_is_their_sum() -> None:
    every = (layer(8, 1.5, 3.0), layer(8, 0.0, 3.5), layer(8), layer(0))
    assert LayerSums.of(every).backward_input == 1.5 + 0.0 + 2.0 + 4.0
