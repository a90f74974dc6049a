"""A partition in a word: written, read back, and refused with the reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import Placement
from backend.planning.cuts import cut_of, read_cut, write_cut
from backend.planning.plan import Partition, Stage

BASE = Partition((Stage(0, 14, (0, 1, 2)), Stage(14, 20, (3,))))
PLACED = Partition((Stage(0, 14, (0, 2)), Stage(14, 20, (1, 3))))


def test_a_partition_is_one_short_word() -> None:
    assert write_cut(BASE) == "14x3-20x1"
    assert write_cut(PLACED) == "14@0.2-20@1.3"


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=8, unique=True).map(sorted),
    st.data(),
)
def test_what_is_written_is_read_back(stops: list[int], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 4), min_size=len(stops), max_size=len(stops)))
    devices = data.draw(st.permutations(range(sum(counts))))
    stages, first = [], 0
    for stop, count in zip(stops, counts, strict=True):
        stages.append(Stage(first, stop, tuple(devices[:count])))
        first, devices = stop, devices[count:]
    cut = Partition(tuple(stages))
    assert read_cut(write_cut(cut), cut, 64) == cut


def test_moving_a_cut_keeps_the_devices_and_new_replicas_take_them_in_order() -> None:
    moved = cut_of([10, 20], [2, 2], PLACED, 4)
    assert [stage.devices for stage in moved.stages] == [(0, 2), (1, 3)]
    more = cut_of([10, 20], [3, 1], PLACED, 4)
    assert [stage.devices for stage in more.stages] == [(0, 1, 2), (3,)]


def test_chunks_share_the_devices_of_their_position() -> None:
    base = Partition(tuple(Stage(i, i + 1, (i % 2,)) for i in range(4)), chunks=2)
    cut = read_cut("1x1-2x1-3x1-4x1", base, 2)
    assert cut == base
    assert write_cut(cut) == "1x1-2x1-3x1-4x1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("14x3-", "cannot be read"),
        ("a hundred", "cannot be read"),
        ("14x3-19x1", "do not cover 20 layers"),
        ("14x1-10x1-20x1", "do not cover 20 layers"),
        ("0x1-20x1", "do not cover 20 layers"),
        ("14x4-20x1", "5 replicas do not fit on 4 devices"),
        ("14x0-20x1", "0 replicas"),
        ("14@0-20x1", "some stages only"),
        ("14@0-20@0", "no device of its own"),
    ],
)
def test_what_is_no_partition_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_cut(text, BASE, 4)


def test_stops_and_replicas_must_be_as_many() -> None:
    with pytest.raises(InvalidInput, match="3 stages have 2 numbers"):
        cut_of([1, 2, 20], [1, 1], BASE, 4)


def test_a_v_goes_back_over_the_devices() -> None:
    there = (Stage(0, 5, (0,)), Stage(5, 10, (1,)), Stage(10, 15, (1,)), Stage(15, 20, (0,)))
    cut = Partition(there, chunks=2, placement=Placement.V)
    assert read_cut(write_cut(cut), cut, 2) == cut
    moved = cut_of([4, 8, 12, 20], [1, 1, 1, 1], cut, 2)
    assert [stage.devices for stage in moved.stages] == [(0,), (1,), (1,), (0,)]
    assert [number for number in range(-1, 5) if cut.crosses(number)] == [0, 2]
    assert [cut.held_by(rank) for rank in (0, 1)] == [(0, 3), (1, 2)]
    with pytest.raises(InvalidInput, match=r"stage 2 is on devices \(1,\), but its pipeline rank"):
        Partition(there, chunks=2)


def test_chunks_are_placed_otherwise_on_the_same_devices() -> None:
    stages = (Stage(n, n + 1, (n % 2, n % 2 + 2)) for n in range(4))
    cut = Partition(tuple(stages), chunks=2)
    v = cut.placed(Placement.V)
    assert [stage.devices for stage in v.stages] == [(0, 2), (1, 3), (1, 3), (0, 2)]
    assert v.placed(Placement.ROUND_ROBIN) == cut
    whole = Partition((Stage(0, 8, (0,)),))
    assert whole.placed(Placement.V) == whole
