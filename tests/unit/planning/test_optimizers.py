"""The catalog of optimizers: one entry per name that a document may hold."""

from typing import get_args

import pytest

from backend.codec import from_plain
from backend.errors import InvalidInput
from backend.planning.optimizers import OPTIMIZERS, OptimizerName, optimizer_named
from backend.runs.request.spec import OptimizerSpec


def test_every_name_has_its_facts():
    assert tuple(OPTIMIZERS) == get_args(OptimizerName)
    assert len({found.title for found in OPTIMIZERS.values()}) == len(OPTIMIZERS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_specification_may_name_each(name):
    assert from_plain(OptimizerSpec, {"name": name}).name == name
    assert optimizer_named(name).copies() == 1 + OPTIMIZERS[name].values


def test_an_unknown_one_names_the_known_ones():
    with pytest.raises(InvalidInput, match="shampoo") as refusal:
        optimizer_named("shampoo")
    assert "adamw" in refusal.value.advice
