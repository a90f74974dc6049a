"""The layer table: one unit and one number of decimals per column."""

import pytest

from app.charts.groups import Detail, compute, groups
from app.components.profile.layer_table import EACH, decimals, rows
from app.formats import seconds
from tests.app import seed
from tests.unit.app.models import transformer


@pytest.mark.parametrize(
    ("values", "places"),
    [([72.3425, 10.966, 0.0], 1), ([7.2, 0.1], 2), ([643.0], 0), ([0.043], 4), ([0.0], 0), ([], 0)],
)
def test_the_largest_value_of_a_column_has_three_digits(values: list[float], places: int) -> None:
    assert decimals(values) == places


def test_every_column_has_a_cell_per_layer_and_numbers_are_unrounded() -> None:
    profile = seed.a_profile()
    table = rows(profile, groups(profile.graph, Detail.FOLDED))
    assert {len(column) for column in table.values()} == {len(profile.layers)}
    assert table["backward, ms"][0] == profile.layers[0].backward * 1e3


def test_a_fold_is_one_row_with_what_its_blocks_take_together_and_one_by_one() -> None:
    profile = transformer(40)
    shown = groups(profile.graph, Detail.FOLDED)
    table = rows(profile, shown)
    assert table["layer"] == [
        "model.embed_tokens",
        "model.layers.0 to 39",
        "model.norm",
        "lm_head",
    ]
    assert table["kind"][1] == "40 × 6\u00a0layers"
    (forward,) = [values for name, values in table.items() if name.startswith("forward")]
    unit = forward[0] / profile.layers[0].forward
    assert sum(forward) == pytest.approx(unit * sum(layer.forward for layer in profile.layers))
    least, most = shown[1].spread(compute)
    assert table[EACH] == ["", f"{seconds(least)} to {seconds(most)}", "", ""]
    assert least < shown[1].each(compute) < most


def test_opened_blocks_are_a_row_each() -> None:
    profile = transformer(40)
    table = rows(profile, groups(profile.graph, Detail.BLOCKS))
    assert table["layer"][1:3] == ["model.layers.0", "model.layers.1"]
    assert len(table["layer"]) == 43
    assert EACH not in table
