"""The layer table: one unit and one number of decimals per column."""

import pytest

from app.components.profile.layer_table import decimals, rows
from tests.app import seed


@pytest.mark.parametrize(
    ("values", "places"),
    [([72.3425, 10.966, 0.0], 1), ([7.2, 0.1], 2), ([643.0], 0), ([0.043], 4), ([0.0], 0), ([], 0)],
)
def test_the_largest_value_of_a_column_has_three_digits(values: list[float], places: int) -> None:
    assert decimals(values) == places


def test_every_column_has_a_cell_per_layer_and_numbers_are_unrounded() -> None:
    profile = seed.a_profile()
    table = rows(profile)
    assert {len(column) for column in table.values()} == {len(profile.layers)}
    assert table["backward, ms"][0] == profile.layers[0].backward * 1e3
