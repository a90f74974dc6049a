"""Files of chunks in a V pass through torch's own reader and writer, both ways: the same order,
stages on the same ranks, the messages that torch adds, and the timeline."""

from pathlib import Path

import pytest
from torch.distributed.pipelining import schedules as torch_schedules
from torch.distributed.pipelining._utils import generate_stage_to_rank_mapping

from backend.errors import InvalidInput
from backend.pipeline.actions import Action, Flow, Recv, Send
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.exchange.torch_csv import read_csv, write_csv
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import verify
from backend.prediction.uniform import UniformDurations

SIZES = [(2, 4), (3, 6), (4, 8), (4, 17)]
MESSAGES = {"SEND_F", "SEND_B", "RECV_F", "RECV_B"}


def a_v(p: int, m: int) -> Shape:
    return Shape((1,) * p, m, m, chunks=2, placement=Placement.V)


def runtime(kind: type, p: int, m: int):
    """One of torch's schedules without stages and processes."""
    made = object.__new__(kind)
    sizes = {"pp_group_size": p, "_num_stages": 2 * p, "num_stages": 2 * p, "_n_microbatches": m}
    made.__dict__ |= sizes | {"_stages": [], "_defer_pp_recv": False, "pipeline_order": {}}
    return made


def message(action: Action) -> str:
    """The cell of torch's for a message, which names the stage that sends or receives it."""
    assert isinstance(action, Send | Recv)
    there, way = action.message.flow is Flow.ACTIVATION, "SEND"
    stage = action.message.stage
    if isinstance(action, Recv):
        stage, way = stage + (1 if there else -1), "RECV"
    return f"{stage}{way}_{'F' if there else 'B'}{action.message.microbatch}"


@pytest.mark.parametrize("name", ["zb-v", "v-half", "v-min", "dualpipe-v"])
@pytest.mark.parametrize(("p", "m"), SIZES)
def test_torch_reads_our_file_and_writes_it_back(name: str, p: int, m: int, tmp_path: Path) -> None:
    program = lower(schedule(name), a_v(p, m))
    file, again = tmp_path / "ours.csv", tmp_path / "torchs.csv"
    file.write_text(write_csv(program))
    read = runtime(torch_schedules._PipelineScheduleRuntime, p, m)
    read._load_csv(str(file))
    assert read.stage_index_to_group_rank == generate_stage_to_rank_mapping(p, 2 * p, style="v")
    for rank, actions in enumerate(program.ranks):
        ours = [message(action) for action in actions if isinstance(action, Send | Recv)]
        theirs = [
            str(action)
            for action in read.pipeline_order_with_comms[rank]
            if action.computation_type.value in MESSAGES
        ]
        assert sorted(ours) == sorted(theirs)
        assert [o for o in ours if "SEND" in o] == [t for t in theirs if "SEND" in t]
    read._dump_csv(str(again), format="compute_only")
    assert read_csv(again.read_text()).ranks == program.ranks


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("zb-v", torch_schedules.ScheduleZBVZeroBubble),
        ("dualpipe-v", torch_schedules.ScheduleDualPipeV),
    ],
)
@pytest.mark.parametrize(("p", "m"), SIZES)
def test_a_file_that_torch_writes_has_our_timeline(
    name: str, theirs: type, p: int, m: int, tmp_path: Path
) -> None:
    """Of halves that differ."""
    made = runtime(theirs, p, m)
    rows = {rank: made._calculate_single_rank_operations(rank) for rank in range(p)}
    made.pipeline_order = rows
    made._dump_csv(str(tmp_path / "torchs.csv"), format="compute_only")
    text = (tmp_path / "torchs.csv").read_text()
    assert ("OVERLAP_F_B" in text) == (name == "dualpipe-v")
    program, ours = read_csv(text), lower(schedule(name), a_v(p, m))
    assert verify(program) == ()
    assert program.ranks == ours.ranks
    durations = UniformDurations(2.0, 2.6, 1.4, chunks=2)
    assert simulate(program, durations).spans == simulate(ours, durations).spans


def test_of_a_pair_every_part_is_a_computation() -> None:
    assert read_csv("(0F0;0B0)OVERLAP_F_B") == read_csv("0F0,0B0")
    with pytest.raises(InvalidInput, match="row 1: '0X0' is not a computation"):
        read_csv("(0F0;0X0)OVERLAP_F_B")
    with pytest.raises(InvalidInput, match="is not a computation"):
        read_csv("(0F0;0B0)OVERLAP_X")
