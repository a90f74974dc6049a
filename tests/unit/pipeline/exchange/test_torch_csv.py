"""Torch itself reads what we write and checks it, and we read what torch writes."""

import csv
import io
from types import SimpleNamespace

import pytest
from torch.distributed.pipelining import schedules as torch_schedules

from backend.errors import InvalidInput
from backend.pipeline.actions import Step
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.exchange.torch_csv import read_csv, write_csv
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.verify import verify
from tests.oracles.torch_orders import interleaved

SHAPES = {
    "gpipe": Shape((1,) * 4, 8, 8),
    "1f1b-flush": Shape((1,) * 4, 8, 8),
    "afp": Shape((1,) * 3, 8, 8, advance=2),
    "zb-h1": Shape((1,) * 4, 8, 8),
    "zb-h2": Shape((1,) * 4, 12, 12),
    "interleaved": Shape((1,) * 4, 8, 8, chunks=3),
    "interleaved-zb": Shape((1,) * 4, 8, 8, chunks=3),
    "zb-v": Shape((1,) * 4, 8, 8, chunks=2, placement=Placement.V),
    "v-half": Shape((1,) * 4, 8, 8, chunks=2, placement=Placement.V),
    "dualpipe-v": Shape((1,) * 4, 8, 8, chunks=2, placement=Placement.V),
    "v-min": Shape((1,) * 3, 8, 8, chunks=2, placement=Placement.V),
}
EACH = pytest.mark.parametrize("name", SHAPES)


@EACH
def test_torch_accepts_the_order(name):
    """Its own reader of cells, and its own check that the order can run."""
    shape = SHAPES[name]
    rows = csv.reader(io.StringIO(write_csv(lower(schedule(name), shape))))
    actions = {
        rank: [torch_schedules._Action.from_str(cell) for cell in row]
        for rank, row in enumerate(rows)
    }
    torch_schedules._validate_schedule(
        actions, shape.pipeline_size, shape.num_stages, shape.num_microbatches
    )


@EACH
def test_what_is_written_comes_back(name):
    program = lower(schedule(name), SHAPES[name])
    back = read_csv(write_csv(program))
    assert back.ranks == program.ranks
    assert back.schedule == "custom"
    assert verify(back) == ()


def test_the_text_is_torchs():
    program = lower(schedule("zb-h1"), Shape((1, 1), 3, 3))
    assert write_csv(program).splitlines() == [
        "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2",
        "1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2",
    ]


def test_torchs_own_interleaved_order_is_ours():
    """The rank orders that torch generates for 4 ranks, 2 chunks and 8 microbatches."""
    p, v, m = 4, 2, 8
    program = read_csv(interleaved(p, v, m))
    assert verify(program) == ()
    ours = lower(schedule("interleaved"), Shape((1,) * p, m, m, chunks=v))
    for mine, other in zip(ours.ranks, program.ranks, strict=True):
        assert [a for a in mine if not isinstance(a, Step)] == [
            a for a in other if not isinstance(a, Step)
        ]


@pytest.mark.parametrize(
    ("name", "theirs", "ranks"),
    [
        ("gpipe", torch_schedules.ScheduleGPipe, 4),
        ("1f1b-flush", torch_schedules.Schedule1F1B, 3),  # torch's table counts the last from 1
    ],
)
def test_torchs_own_orders_of_one_stage_per_rank_are_ours(name, theirs, ranks):
    sizes = SimpleNamespace(_n_microbatches=8, pp_group_size=4, _num_stages=4)
    order = theirs._get_pipeline_order(sizes)
    ours = write_csv(lower(schedule(name), SHAPES[name])).split()
    for rank in range(ranks):
        *computes, last = [str(action) for action in order[rank] if action]
        assert ",".join(computes) == ours[rank]
        assert last == f"{rank}REDUCE_GRAD"


@pytest.mark.parametrize(("p", "v", "m"), [(2, 2, 4), (4, 2, 8), (3, 3, 6), (4, 4, 16)])
def test_torchs_interleaved_zero_bubble_is_ours(p, v, m):
    sizes = SimpleNamespace(n_local_stages=v, pp_group_size=p, _n_microbatches=m)
    sizes.microbatches_per_round = p
    ours = write_csv(lower(schedule("interleaved-zb"), Shape((1,) * p, m, m, chunks=v))).split()
    make = torch_schedules.ScheduleInterleavedZeroBubble._calculate_single_rank_operations
    for rank in range(p):
        assert ",".join(str(action) for action in make(sizes, rank) if action) == ours[rank]


def test_torchs_zero_bubble_with_one_stage_per_rank_is_h1():
    sizes = SimpleNamespace(
        n_local_stages=1, pp_group_size=4, _n_microbatches=8, microbatches_per_round=4
    )
    ours = write_csv(lower(schedule("zb-h1"), SHAPES["zb-h1"])).split()
    make = torch_schedules.ScheduleInterleavedZeroBubble._calculate_single_rank_operations
    for rank in range(4):
        assert ",".join(str(action) for action in make(sizes, rank) if action) == ours[rank]


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("zb-v", torch_schedules.ScheduleZBVZeroBubble),
        ("dualpipe-v", torch_schedules.ScheduleDualPipeV),
    ],
)
@pytest.mark.parametrize(("p", "m"), [(1, 2), (2, 4), (2, 9), (3, 6), (4, 8), (4, 17), (5, 12)])
def test_torchs_own_orders_of_a_v_are_ours(name, theirs, p, m):
    sizes = SimpleNamespace(pp_group_size=p, _num_stages=2 * p, num_stages=2 * p)
    sizes._n_microbatches = m
    rows = (theirs._calculate_single_rank_operations(sizes, rank) for rank in range(p))
    cells = [",".join(cell for each in row if each for cell in told(each)) for row in rows]
    shape = Shape((1,) * p, m, m, chunks=2, placement=Placement.V)
    program = lower(schedule(name), shape)
    assert write_csv(program).split() == cells
    assert read_csv("\n".join(cells)).ranks == program.ranks


def told(action):
    """The cells of an action of torch's; a pair that it overlaps is its parts in turn."""
    return [str(part) for part in action.sub_actions or [action]]


def test_empty_cells_say_nothing():
    assert read_csv(",0F0,,0B0,\n") == read_csv("0F0,0B0\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the CSV has no actions"),
        ("0F0,0X0", "row 1: '0X0' is not a computation"),
        ("0F0,0SEND_F0", "row 1: '0SEND_F0' is not a computation"),
        ("0F0\n0B0", "row 2 runs stage 0, which belongs on row 1"),
        ("0F0,3F0,2F0\n1F0", "row 1 runs stage 3, which belongs on row 2"),
        ('0F0,"0B', "this is not CSV"),
        ("0F0,0F999999999999", "1000000000000 microbatches"),
        ("0F0,999999999999F0", "1000000000000 stages and 1 microbatches"),
    ],
)
def test_what_is_no_order_is_refused(text, message):
    with pytest.raises(InvalidInput, match=message):
        read_csv(text)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("pipedream", Shape((1, 1), 4), "not 4 batches of 'pipedream'"),
        ("gpipe", Shape((1, 1), 8, 4), "not 2 batches of 'gpipe'"),
        ("gpipe", Shape((2, 1), 4, 4), r"no replicas, pipelines or recomputation.*\(2, 1\)"),
    ],
)
def test_what_torch_cannot_say_is_refused(name, shape, message):
    with pytest.raises(InvalidInput, match=message):
        write_csv(lower(schedule(name), shape))


def test_a_read_order_that_cannot_run_is_found_by_the_verifier():
    faults = verify(read_csv("0F0,0B0\n1B0,1F0\n"))
    assert any("comes before its forward" in str(fault) for fault in faults)
