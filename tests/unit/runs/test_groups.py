"""Groups of weights: how they are written, and which rate and decay each weight has."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.codec import from_json, from_plain, to_json
from backend.errors import InvalidInput
from backend.planning.optimizers import OPTIMIZERS
from backend.runs.request.groups import (
    groups_text,
    read_groups,
    settings_of,
    with_decay_as_before,
    with_usual_decay,
)
from backend.runs.request.optimizer_spec import OptimizerSpec, ParameterGroup

NUMBERS = st.sampled_from([0.0, 0.01, 0.5, 1.0, 10.0])
GROUPS = st.builds(ParameterGroup, st.text("ab.*[]", min_size=1), NUMBERS, st.none() | NUMBERS)


@given(st.lists(GROUPS))
def test_what_is_written_is_read(groups: list[ParameterGroup]) -> None:
    assert read_groups(groups_text(groups).split(";")) == tuple(groups)
    spec = OptimizerSpec(groups=tuple(groups))
    assert from_json(OptimizerSpec, to_json(OptimizerSpec, spec)) == spec


@pytest.mark.parametrize("text", ["head", "head=", "=2", "head=fast", "head=1,2,3", "head=-1"])
def test_what_is_no_group_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_groups([text])
    assert "head=10" in caught.value.advice


def test_the_first_group_that_has_a_weight_counts() -> None:
    groups = read_groups(["head=10", "*.bias=2,0.5", "layers.[01].*=0.1"])
    spec = OptimizerSpec("adamw", 0.1, weight_decay=0.3, decayed="matrices", groups=groups)
    found = {
        ("head.weight", 2): (1.0, 0.3),
        ("head.bias", 1): (1.0, 0.0),
        ("header.weight", 2): (0.1, 0.3),
        ("layers.0.out.bias", 1): (0.2, 0.5),
        ("layers.1.out.weight", 2): (pytest.approx(0.01), 0.3),
        ("layers.2.norm.weight", 1): (0.1, 0.0),
        ("experts.bias", 2): (0.2, 0.5),
    }
    assert {each: settings_of(spec, *each) for each in found} == found
    assert settings_of(replace(spec, decayed="all"), "layers.2.norm.weight", 1) == (0.1, 0.3)
    assert settings_of(replace(spec, groups=()), "experts.bias", 2) == (0.1, 0.0)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_decay_is_for_what_is_usual_and_in_old_documents_for_all(name: str) -> None:
    old = from_plain(OptimizerSpec, {"name": name, "weight_decay": 0.1})
    assert settings_of(old, "norm.weight", 1) == (0.01, 0.1)
    assert settings_of(with_decay_as_before(old), "norm.weight", 1) == (0.01, 0.1)
    is_spared = name in ("adamw", "adafactor", "lion")
    new = with_usual_decay(old)
    assert settings_of(new, "norm.weight", 1)[1] == (0.0 if is_spared else 0.1)
    assert with_usual_decay(with_decay_as_before(old)) == with_decay_as_before(old)
    assert with_decay_as_before(new) == new
    assert with_usual_decay(OptimizerSpec(name)) == OptimizerSpec(name)
