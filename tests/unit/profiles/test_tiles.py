"""The roofline of a device's record: never below either bound, and what tiles move again."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.profiles.devices import Peak
from backend.profiles.roofline import seconds, traffic

SIZES = st.floats(0, 1e12)
RATES = st.floats(1e6, 1e15)
LEAST = 1e3


@given(SIZES, SIZES, RATES, RATES, st.floats(0, 1))
def test_a_layer_takes_no_less_than_either_bound_and_the_longer_at_its_ends(
    flops: float, moved: float, rate: float, bandwidth: float, launch: float
) -> None:
    taken = seconds(flops, moved, Peak("x", rate, bandwidth, launch=launch))
    assert taken >= launch + flops / rate
    assert taken >= launch + moved / bandwidth
    assert seconds(flops, 0.0, Peak("x", rate, bandwidth)) == flops / rate
    assert seconds(0.0, moved, Peak("x", rate, bandwidth)) == moved / bandwidth


@given(SIZES, SIZES, SIZES, st.floats(LEAST, 1e12), st.floats(1, 1e3))
def test_more_on_chip_memory_is_never_slower(
    read: float, weights: float, output: float, on_chip: float, times: float
) -> None:
    small, large = (traffic(read, weights, output, size) for size in (on_chip, on_chip * times))
    assert read + weights + output <= large <= small


@given(SIZES, SIZES, SIZES)
def test_what_fits_moves_once(read: float, weights: float, output: float) -> None:
    once = traffic(read, weights, output)
    assert traffic(read, weights, output, 2 * max(weights, output, 1.0)) == once
    assert once == read + weights + output


@given(st.floats(1, 1e9), st.floats(1, 1e9), st.floats(1, 1e9), st.floats(LEAST, 1e9))
def test_inputs_or_weights_are_read_again_for_every_piece(
    read: float, weights: float, output: float, on_chip: float
) -> None:
    half = on_chip / 2
    inputs_again = read * ceil(weights / half) + weights + output
    weights_again = read + weights * ceil(output / half) + output
    found = traffic(read, weights, output, on_chip)
    assert found == pytest.approx(min(inputs_again, weights_again))


def test_by_hand() -> None:
    """100 bytes on the chip hold 50 of the 200 of weights: the 30 of inputs are read 4 times; or 50
    of the 120 of output: the weights are read 3 times."""
    assert traffic(30, 200, 120, 100) == 30 * 4 + 200 + 120
