"""Models of 80 to 430 layers as charts: what is folded, and labels that stand apart."""

from collections.abc import Iterable
from itertools import combinations, pairwise
from math import cos, radians, sin

import plotly.graph_objects as go
import pytest

from app.charts.groups import FEW, Detail, details, edges, groups, pair_groups
from app.charts.layer_costs import SPREAD, layer_costs, profile_pair
from app.charts.layer_overview import layer_overview
from app.components.partition.partition_editor import at, drawn, marks
from backend.planning.plan import Partition, Stage
from backend.profiles.layer import Layer
from backend.profiles.pair import ProfilePair
from backend.profiles.profile import ModelGraph, Profile
from tests.unit.app.models import BLOCK, MODELS, SIZES, transformer

AXES = {768: 560.0, 1440: 985.0}
"""Pixels of an axis in a window so wide, as measured in Chromium."""
LETTER, LINE = 6.2, 12.0
"""Pixels of the labels' type."""
Box = tuple[float, float, float, float]


def chain(layers: Iterable[Layer]) -> Profile:
    return Profile("net", ModelGraph.chain(tuple(layers)), microbatch=4)


def boxes(figure: go.Figure, wide: float) -> list[Box]:
    """What each label of the x axis covers: (left, right, top, bottom), turned so that the text
    is level. Plotly hangs a level label by its middle, a turned one by its end."""
    axis = figure.layout.xaxis
    unit = wide / (axis.range[1] - axis.range[0])
    angle = radians(axis.tickangle)
    found = []
    for place, text in zip(axis.tickvals, axis.ticktext, strict=True):
        long, x = len(text) * LETTER, unit * place
        along, across = x * cos(angle), -x * sin(angle)
        left = along - (long if axis.tickangle else long / 2)
        found.append((left, left + long, across - LINE / 2, across + LINE / 2))
    return found


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


@pytest.mark.parametrize("wide", AXES)
@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.name}-{len(model.layers)}")
def test_labels_never_collide(model: Profile, detail: Detail, wide: int) -> None:
    pair = profile_pair(ProfilePair(model, transformer(12, noise=0.2)), ("1", "2"), detail)
    for figure in (layer_costs(model, "Time", detail), pair):
        found = boxes(figure, AXES[wide])
        assert len(found) >= min(4, len(groups(model.graph, detail)))
        assert not any(overlap(*both) for both in combinations(found, 2))


@pytest.mark.parametrize("num_layers", range(1, FEW + 1))
def test_up_to_forty_layers_are_all_named_and_stand_apart(num_layers: int) -> None:
    model = chain(transformer(7).layers[:num_layers])
    figure = layer_costs(model, "Time", Detail.FOLDED)
    assert len(figure.layout.xaxis.tickvals) == num_layers
    assert not any(overlap(*both) for both in combinations(boxes(figure, AXES[768]), 2))


@pytest.mark.parametrize("detail", Detail)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.name}-{len(model.layers)}")
def test_every_layer_is_in_one_group_and_on_the_axis_in_order(
    model: Profile, detail: Detail
) -> None:
    found = groups(model.graph, detail)
    assert tuple(layer for group in found for layer in group.layers) == model.layers
    assert [group.first for group in found[1:]] == [group.stop for group in found[:-1]]
    places, ends = at(found), marks(found)
    assert len(places) == len(model.layers) + 1
    assert all(left < right for left, right in pairwise(places))
    assert places[-1] == edges(found)[-1]
    assert ends[-1] == len(model.layers)
    assert ends == sorted(set(ends))


@pytest.mark.parametrize("blocks", SIZES)
def test_a_fold_is_one_bar_as_high_as_a_block_with_its_spread(blocks: int) -> None:
    model = transformer(blocks)
    folded, *_ = (group for group in groups(model.graph, Detail.FOLDED) if group.count > 1)
    each = [
        sum(layer.compute for layer in folded.layers[i : i + len(BLOCK)])
        for i in range(0, len(folded.layers), len(BLOCK))
    ]
    figure = layer_costs(model, "Time", Detail.FOLDED)
    forward, backward = figure.data[:2]
    assert len(forward.x) == 4
    assert forward.text[1] == f"{blocks} × block"
    height = (forward.y[1] + backward.y[1]) / 1e3  # seconds: the unit is ms
    assert height == pytest.approx(sum(each) / blocks)
    (whisker,) = [trace for trace in figure.data if trace.name == SPREAD]
    bar, up, down = whisker.y[0], whisker.error_y.array[0], whisker.error_y.arrayminus[0]
    assert bar == pytest.approx(1e3 * height)
    assert bar + up == pytest.approx(1e3 * max(each))
    assert bar - down == pytest.approx(1e3 * min(each))


def test_blocks_that_take_the_same_have_no_whisker() -> None:
    figure = layer_costs(transformer(14, noise=0.0), "Memory", Detail.FOLDED)
    assert SPREAD not in [trace.name for trace in figure.data]


def test_a_small_model_is_shown_layer_by_layer() -> None:
    small = transformer(6)
    assert len(small.layers) <= FEW
    assert details(small.graph) == (Detail.LAYERS,)
    assert len(groups(small.graph, Detail.FOLDED)) == len(small.layers)


def test_what_can_be_chosen_depends_on_what_there_is() -> None:
    assert details(transformer(14).graph) == tuple(Detail)
    assert details(MODELS[-1].graph) == (Detail.LAYERS,)
    ones = (each for each in transformer(60).layers if not each.name.endswith(BLOCK[1:]))
    assert details(chain(ones).graph) == (Detail.FOLDED, Detail.LAYERS)


def test_two_profiles_are_folded_together_and_a_missing_layer_opens_nothing() -> None:
    one, other = transformer(14), transformer(12)
    found = list(pair_groups(ProfilePair(one, other), Detail.FOLDED))
    assert [group.count for group, _, _ in found] == [1, 14, 1, 1]
    _, mine, theirs = found[1]
    assert mine is not None
    assert mine.total(lambda layer: layer.forward) > 0
    assert theirs is None


def test_a_cut_in_the_editor_is_moved_by_blocks_and_by_layers_when_opened() -> None:
    model = transformer(14)
    number = len(model.layers)
    cut = Partition((Stage(0, 1 + 6 * 5 + 2, (0,)), Stage(33, number, (1,))))
    told = drawn(model, cut, 2, Detail.FOLDED)
    assert told["stops"] == [33, number]
    assert told["marks"] == [1, *range(7, 86, 6), 86, 87]
    assert [bar["count"] for bar in told["bars"]] == [1, 14, 1, 1]
    assert told["at"][33] - told["at"][1] == pytest.approx(14 * 32 / 84, abs=1e-3)
    assert drawn(model, cut, 2, Detail.BLOCKS)["marks"] == told["marks"]
    assert drawn(model, cut, 2, Detail.LAYERS)["marks"] == list(range(1, number + 1))


def test_a_window_has_labels_of_its_own() -> None:
    """Of many layers a few modules are named; in a window each layer is, and bars keep their
    hover."""
    model = transformer(40, noise=0.0)
    whole = layer_costs(model, "Time", Detail.LAYERS)
    part = layer_costs(model, "Time", Detail.LAYERS, window=(20, 30))
    assert len(part.data[0].y) == 10
    assert list(part.data[0].hovertext) == list(whole.data[0].hovertext[20:30])
    assert len(part.layout.xaxis.ticktext) == 10
    overview = layer_overview(groups(model.graph, Detail.LAYERS), (20, 30))
    (mark,) = overview.layout.shapes
    assert (mark.x0, mark.x1) == (19.5, 29.5)
    assert len(overview.data[0].y) == len(whole.data[0].y)
