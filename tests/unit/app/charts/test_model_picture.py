"""The picture of a model: every layer seen or inside a closed module, nothing overlapping."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from app.charts.model.model_picture import HEIGHT, WIDTH, Box, Picture, picture
from app.charts.model.module_tree import Module, module_tree
from backend.profiles.crossing import Crossing, TiedWeight
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile


def profile(names: list[str], edges: set[tuple[int, int]], **more) -> Profile:
    layers = tuple(Layer(name, "Linear", 1e-3, 2e-3, 64, 256) for name in names)
    return Profile("net", ModelGraph(layers, tuple(sorted(edges)), **more), 4)


@st.composite
def profiles(draw: st.DrawFn) -> tuple[Profile, frozenset[str]]:
    names = draw(
        st.lists(
            st.lists(st.sampled_from("ab0"), min_size=1, max_size=3).map(".".join),
            min_size=1,
            max_size=14,
            unique=True,
        )
    )
    pairs = list(combinations(range(len(names)), 2))
    edges = draw(st.sets(st.sampled_from(pairs), max_size=24)) if pairs else set()
    keys = [module.key for module in module_tree(names).modules()]
    return profile(names, edges), frozenset(draw(st.sets(st.sampled_from(keys))))


def covered(box: Box) -> range:
    first = box.member
    return range(first.first, first.stop) if isinstance(first, Module) else range(first, first + 1)


def contains(outer: Box, inner: Box) -> bool:
    across = outer.x <= inner.x and inner.x + inner.width <= outer.x + outer.width + 1e-6
    return across and outer.y < inner.y and inner.y + inner.height < outer.y + outer.height


@settings(max_examples=150)
@given(profiles())
def test_boxes_hold_what_is_in_them_and_touch_nothing_else(case) -> None:
    found = picture(*case)
    closed = [box for box in found.boxes if not box.is_open]
    assert sorted(i for box in closed for i in covered(box)) == list(range(len(case[0].layers)))
    for one, other in combinations(found.boxes, 2):
        if one.is_open and set(covered(other)) <= set(covered(one)):
            assert contains(one, other)
        else:
            beside = one.x + one.width <= other.x + 1e-6 or other.x + other.width <= one.x + 1e-6
            over = one.y + one.height <= other.y + 1e-6 or other.y + other.height <= one.y + 1e-6
            assert beside or over


@settings(max_examples=100)
@given(profiles())
def test_every_edge_of_closed_boxes_meets_them(case) -> None:
    found, edges = picture(*case), case[0].graph.edges
    for box in found.boxes:
        if any((a in covered(box)) != (b in covered(box)) and b in covered(box) for a, b in edges):
            assert _ends_at(found, box.x + box.width / 2, box.y)


def _ends_at(found: Picture, x: float, y: float) -> bool:
    ends = [line.points[-1] for line in found.lines]
    return any(abs(a - x) + abs(b - y) < 1e-6 for a, b in ends)


def test_a_closed_model_is_small_and_an_opened_block_shows_its_layers() -> None:
    names = ["wte", *(f"h.{i}.{part}" for i in range(40) for part in ("a", "b", "c")), "head"]
    model = profile(names, {(i, i + 1) for i in range(len(names) - 1)})
    assert len(picture(model, frozenset()).boxes) == 3
    some = picture(model, {"h:1"}).boxes
    assert len(some) == 43
    more = picture(model, {"h:1", "h.3:10"}).boxes
    assert [names[box.member] for box in more if box.within == "h.3"] == ["h.3.a", "h.3.b", "h.3.c"]
    assert {(box.width, box.height) for box in more if not box.is_open} == {(WIDTH, HEIGHT)}


def test_a_tied_weight_is_a_line_of_its_own_kind() -> None:
    chain = {(0, 1), (1, 2), (0, 2)}
    crossings = (Crossing(0, (1,), 64), Crossing(1, (2,), 64), Crossing(0, (2,), 256))
    model = profile(
        ["wte", "h", "head"],
        chain,
        crossings=crossings,
        tied_weights=(TiedWeight(0, (2,), "w", 256),),
    )
    found = picture(model, frozenset())
    assert sorted(line.is_tie for line in found.lines) == [False, False, True]
    both = (*crossings, Crossing(0, (2,), 8))
    model = profile(
        ["wte", "h", "head"], chain, crossings=both, tied_weights=(TiedWeight(0, (2,), "w", 256),)
    )
    assert not any(line.is_tie for line in picture(model, frozenset()).lines)


def test_a_thousand_layers_with_everything_open() -> None:
    names = [f"h.{i // 10}.{i % 10}" for i in range(1000)]
    edges = {(i, i + 1) for i in range(999)} | {(i, i + 7) for i in range(0, 990, 10)}
    model = profile(names, edges)
    opened = frozenset(module.key for module in module_tree(names).modules())
    assert len(picture(model, opened).boxes) == 1000 + 101
