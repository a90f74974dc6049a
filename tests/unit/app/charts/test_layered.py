"""Drawings in rows: nothing overlaps, lines lead down, whatever the graph."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.charts.model.layered import BETWEEN, GAP, layered


@st.composite
def graphs(draw: st.DrawFn):
    count = draw(st.integers(1, 14))
    length = st.sampled_from([10.0, 40.0, 200.0])
    sizes = [(draw(length), draw(length)) for _ in range(count)]
    pairs = list(combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), max_size=30)) if pairs else []
    return sizes, edges


@settings(max_examples=150)
@given(graphs())
def test_boxes_are_apart_and_lines_go_down_from_box_to_box(graph) -> None:
    sizes, edges = graph
    found = layered(sizes, edges)
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(found.places, sizes, strict=True)]
    for left, top, right, bottom in boxes:
        assert -1e-6 <= left <= right <= found.width + 1e-6
        assert -1e-6 <= top <= bottom <= found.height + 1e-6
    for one, other in combinations(boxes, 2):
        is_beside = one[2] + GAP <= other[0] + 1e-6 or other[2] + GAP <= one[0] + 1e-6
        assert is_beside or one[3] <= other[1] + 1e-6 or other[3] <= one[1] + 1e-6
    assert found.routes.keys() == set(edges)
    for (producer, consumer), points in found.routes.items():
        assert points[0][1] == pytest.approx(boxes[producer][3])
        assert points[-1][1] == pytest.approx(boxes[consumer][1])
        assert all(a[1] <= b[1] + 1e-6 for a, b in pairwise(points))


@settings(max_examples=60)
@given(graphs())
def test_lines_pass_beside_the_boxes_of_other_layers(graph) -> None:
    sizes, edges = graph
    found = layered(sizes, edges)
    for points in found.routes.values():
        for (x, top), (_, bottom) in zip(points[1:-1:2], points[2:-1:2], strict=True):
            for (left, y), (width, height) in zip(found.places, sizes, strict=True):
                is_level = y < bottom - 1e-6 and y + height > top + 1e-6
                assert not (is_level and left - 1 < x < left + width + 1)


def test_a_chain_is_straight() -> None:
    found = layered([(20, 10)] * 4, [(0, 1), (1, 2), (2, 3)])
    assert {x for x, _ in found.places} == {0.0}
    assert [y for _, y in found.places] == [i * (10 + BETWEEN) for i in range(4)]


def test_what_depends_on_nothing_stands_above_its_reader() -> None:
    found = layered([(20, 10)] * 4, [(0, 1), (1, 3), (2, 3)])
    assert found.places[2][1] == found.places[1][1]


def test_nothing_at_all() -> None:
    assert layered([], []).width == 0
