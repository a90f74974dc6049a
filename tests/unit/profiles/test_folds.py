"""Equal blocks are folded, nothing else is, and what is folded is all there."""

import re
from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from backend.profiles.folds import Fold, Item, folded
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph

KINDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3)
LISTS = st.lists(st.lists(KINDS, min_size=1, max_size=4), min_size=1, max_size=4)
"""Of each list of blocks the kinds of each block's layers."""


def layer(name: str, kind: str, num_bytes: int = 8) -> Layer:
    return Layer(name, kind, 1e-3, 2e-3, num_bytes, 16)


def graph(layers: Sequence[Layer]) -> ModelGraph:
    return ModelGraph.chain(tuple(layers))


def nested(lists: list[list[list[str]]]) -> ModelGraph:
    """Blocks under numbered paths: "part1.0.2" is the third layer of the second list's first."""
    return graph(
        [
            layer(f"part{number}.{block}.{place}", kind)
            for number, blocks in enumerate(lists)
            for block, kinds in enumerate(blocks)
            for place, kind in enumerate(kinds)
        ]
    )


def row(kinds: Sequence[str]) -> ModelGraph:
    """Layers that are numbered one by one."""
    return graph([layer(f"node{i}", kind) for i, kind in enumerate(kinds)])


def unfolded(items: Sequence[Item]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Fold):
            for block in item.blocks:
                yield from block
        else:
            yield item


def folds(model: ModelGraph) -> list[Fold]:
    return [item for item in folded(model) if isinstance(item, Fold)]


def are_equal(model: ModelGraph, blocks: Sequence[range]) -> bool:
    """Whether at each place the layers are of one kind and size, and their names differ in one
    number at most, the same for all blocks."""
    for places in zip(*blocks, strict=True):
        layers = [model.layers[i] for i in places]
        if len({(each.kind, each.output_bytes, each.parameter_bytes) for each in layers}) > 1:
            return False
        parts = [re.split("([0-9]+)", each.name) for each in layers]
        differing = [place for place in zip(*parts, strict=True) if len(set(place)) > 1]
        if len(differing) != 1 or not all(part.isdigit() for part in differing[0]):
            return False
    return True


MODELS = st.one_of(
    LISTS.map(nested),
    st.lists(st.sampled_from("ab"), min_size=1, max_size=24).map(row),
)


@given(MODELS)
def test_what_is_folded_is_all_there_and_in_order(model: ModelGraph) -> None:
    assert list(unfolded(folded(model))) == list(range(len(model.layers)))


@given(MODELS)
def test_only_equal_blocks_are_folded(model: ModelGraph) -> None:
    for fold in folds(model):
        blocks = list(fold.blocks)
        assert len(blocks) == fold.count >= 2
        assert are_equal(model, blocks)


@given(MODELS)
def test_seconds_make_no_difference(model: ModelGraph) -> None:
    other = graph([each.scaled(compute=i + 2) for i, each in enumerate(model.layers)])
    assert folded(other) == folded(model)


@given(st.lists(st.sampled_from("ab"), min_size=2, max_size=16))
def test_in_a_row_the_largest_fold_is_found_and_goes_no_further(kinds: list[str]) -> None:
    model, number = row(kinds), len(kinds)
    every = [
        size * count
        for first in range(number)
        for size in range(1, number)
        for count in range(2, (number - first) // size + 1)
        if len({tuple(kinds[first + b * size : first + (b + 1) * size]) for b in range(count)}) == 1
    ]
    items = folded(model)
    found = folds(model)
    assert max((fold.size * fold.count for fold in found), default=0) == max(every, default=0)
    single = {item for item in items if not isinstance(item, Fold)}
    for fold in found:
        (block, *_) = fold.blocks
        for further in (
            range(fold.first - fold.size, fold.first),
            range(fold.stop, fold.stop + fold.size),
        ):
            if single.issuperset(further):
                assert [kinds[i] for i in further] != [kinds[i] for i in block]


@given(KINDS, st.integers(2, 6), st.integers(0, 3), st.integers(0, 3))
def test_blocks_of_a_list_are_one_fold(
    kinds: list[str], count: int, before: int, after: int
) -> None:
    layers = [layer(f"stem{'x' * i}", "stem") for i in range(before)]
    layers += [layer(f"h.{b}.{p}", kind) for b in range(count) for p, kind in enumerate(kinds)]
    layers += [layer(f"tail{'x' * i}", "tail") for i in range(after)]
    (fold,) = folds(graph(layers))
    assert (fold.first, fold.stop) == (before, before + count * len(kinds))
    if len(set(kinds)) == len(kinds):
        assert (fold.size, fold.count) == (len(kinds), count)
        assert fold.names == tuple(f"h.{b}" for b in range(count))
        assert fold.name == f"h.0 to {count - 1}"


def test_a_block_that_is_different_divides_the_fold() -> None:
    sizes = [8, 8, 8, 9, 8, 8]
    model = graph([layer(f"h.{i}.mlp", "mlp", size) for i, size in enumerate(sizes)])
    assert [(fold.first, fold.count) for fold in folds(model)] == [(0, 3), (4, 2)]


def test_blocks_under_other_paths_are_not_equal() -> None:
    names = ["encoder.0.mlp", "decoder.0.mlp", "encoder.1.norm", "encoder.1.mlp"]
    assert folds(graph([layer(name, "mlp") for name in names])) == []


def test_nodes_are_folded_where_the_least_is_sent_between_blocks() -> None:
    kinds = "stem", *("big", "small") * 4, "big"
    sizes = [100 if kind == "big" else 1 for kind in kinds]
    layers = [layer(f"node{i}", k, s) for i, (k, s) in enumerate(zip(kinds, sizes, strict=True))]
    (fold,) = folds(graph(layers))
    assert [graph(layers).cut_bytes[block.stop - 1] for block in fold.blocks] == [1] * 4
    assert (fold.name, fold.names[0]) == ("node1 to 8", "node1 to 2")
