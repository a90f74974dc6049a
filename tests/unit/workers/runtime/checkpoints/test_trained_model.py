"""Which file of a trained model has which tensor of which rank."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from workers.runtime.checkpoints.tensor_files import TensorForm
from workers.runtime.checkpoints.trained_model import SHARD, Held, layout

ONE, INDEXED = "model.safetensors", "model-{:05}-of-{:05}.safetensors"
MOST = 2 * SHARD


def form(size: int) -> TensorForm:
    return TensorForm("U8", (size,), size)


@st.composite
def models(draw) -> tuple[dict[str, TensorForm], dict[str, tuple[str, ...]], list[Held]]:
    """A model's state, tied names, and what every rank holds of it; some of it nobody."""
    sizes = draw(st.lists(st.integers(0, MOST) | st.just(SHARD), max_size=12))
    ranks, stages = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    every: list[dict[int, dict[str, TensorForm]]] = [{} for _ in range(ranks)]
    for stage in range(stages):
        every[stage % ranks][stage] = {}
    state, tied = {}, {}
    for number, size in enumerate(sizes):
        names = tuple(f"t{number}.{k}" for k in range(draw(st.integers(1, 2))))
        state |= dict.fromkeys(names, form(size))
        tied |= dict.fromkeys(names, names)
        holders = draw(st.sets(st.integers(0, stages - 1), max_size=2))
        for stage in holders:
            every[stage % ranks][stage][draw(st.sampled_from(names))] = form(size)
    order = draw(st.permutations(list(state)))
    return {name: state[name] for name in order}, tied, every


@given(models())
def test_every_name_is_in_one_file_and_comes_from_a_rank_that_has_it(model) -> None:
    state, tied, every = model
    files = layout(state, tied, every)
    found = {name: place for places in files.values() for name, place in places.items()}
    assert sum(map(len, files.values())) == len(found)
    assert found.keys() == state.keys()
    held = [{name for forms in told.values() for name in forms} for told in every]
    for name, place in found.items():
        assert place.form == state[name]
        if any(other in names for names in held for other in tied[name]):
            assert place.name in held[place.rank] & set(tied[name])
        else:
            assert (place.rank, place.name) == (0, name)


@given(models())
def test_shards_are_numbered_bounded_of_one_rank_and_no_more_than_needed(model) -> None:
    state, tied, every = model
    files = layout(state, tied, every)
    shards = list(files.values())
    total = sum(form.size for form in state.values())
    if len(files) == 1:
        assert [*files] == [ONE]
        assert total <= SHARD or len({place.rank for place in shards[0].values()}) == 1
        return
    assert total > SHARD
    assert [*files] == [INDEXED.format(n, len(files)) for n in range(1, len(files) + 1)]
    for shard in shards:
        assert len({place.rank for place in shard.values()}) == 1
        assert len(shard) == 1 or sum(place.form.size for place in shard.values()) <= SHARD
    by_stage = sorted((stage, [*forms]) for told in every for stage, forms in told.items())
    stage_of = {name: stage for stage, names in reversed(by_stage) for name in names}
    for before, after in pairwise(shards):
        first = next(iter(after.values()))
        whole = sum(place.form.size for place in before.values()) + first.form.size
        stages = {stage_of.get(place.name, 0) for place in (*before.values(), first)}
        assert whole > SHARD or len(stages) > 1


def test_a_tensor_that_is_larger_than_a_file_is_the_only_one() -> None:
    state = {"a": form(SHARD + 1)}
    assert [*layout(state, {"a": ("a",)}, [{0: state}])] == [ONE]
    told: list[Held] = [{0: state, 1: {"b": form(0)}}]
    files = layout(state | told[0][1], {"a": ("a",), "b": ("b",)}, told)
    assert [[*places] for places in files.values()] == [["a"], ["b"]]
