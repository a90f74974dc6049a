"""Lines that Slurm 22.05, 24.11 and 26.05 printed, and lines that are none."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.cluster import Device
from backend.runs.pools.job import JobState, Seen
from backend.runs.pools.room import Machines
from workers.pools.engine import EngineAway
from workers.pools.slurm import listing

RUNNING = "x|1|RUNNING|2026-11-23T13:57:20|n[1-2]|None"
SOON = "y|2|PENDING|2026-11-23T14:02:20|n[1-4]|Resources"
GPUS = """\
n1|mixed|gpu:h100:4|gpu:h100:2(IDX:0-1)|1/3/0/4|4000|1:00:00|
n2|idle|gpu:h100:4|gpu:h100:0(IDX:N/A)|0/4/0/4|4000|1:00:00|
"""
CORES = "c1|mixed|(null)|gpu:0|1/3/0/4|4000|infinite|\n"
H100 = Device("h100")


def job(line: str) -> Seen:
    return next(iter(listing.jobs(line).values()))


def test_no_jobs() -> None:
    assert listing.jobs("") == {}


def test_a_running_job_has_its_machines() -> None:
    seen = job(RUNNING)
    assert (seen.engine_id, seen.state, seen.reason) == ("1", JobState.RUNNING, "")
    assert seen.hosts == ("n1", "n2")
    assert seen.starts_at == datetime(2026, 11, 23, 13, 57, 20, tzinfo=UTC)


def test_a_waiting_job_has_a_reason_and_an_expected_start() -> None:
    seen = job(SOON)
    assert (seen.state, seen.reason, seen.advice) == (JobState.WAITING, "Resources", "")
    assert seen.starts_at == datetime(2026, 11, 23, 14, 2, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "help_"),
    [
        ("PartitionNodeLimit", "fewer machines"),
        ("PartitionTimeLimit", "less time"),
        ("PartitionConfig", "fewer machines"),
        ("BadConstraints", "options"),
        ("QOSMaxGRESPerJob", "limit for one job"),
        ("AssocMaxWallDurationPerJobLimit", "limit for one job"),
        ("AccountNotAllowed", "account"),
        ("QOSNotAllowed", "account"),
        ("InvalidAccount", "sacctmgr"),
        ("InvalidQOS", "sacctmgr"),
        ("JobHeldUser", "scontrol release 9"),
        ("JobHeldAdmin", "administrator"),
        ("launch failed requeued held", "scontrol release 9"),
        ("PartitionDown", "administrators"),
    ],
)
def test_what_never_starts_by_itself_is_held_with_advice(reason: str, help_: str) -> None:
    seen = job(f"a|9|PENDING|N/A||{reason}")
    assert (seen.state, seen.reason) == (JobState.HELD, reason)
    assert help_ in seen.advice


@pytest.mark.parametrize(
    "reason",
    [
        *("None", "Priority", "Resources", "Dependency", "BeginTime", "QOSMaxJobsPerUserLimit"),
        *("ReqNodeNotAvail, UnavailableNodes:n[1-2]", "QOSGrpGRES", "Reservation"),
    ],
)
def test_what_passes_by_itself_waits(reason: str) -> None:
    seen = job(f"a|9|PENDING|N/A||{reason}")
    assert (seen.state, seen.advice) == (JobState.WAITING, "")


def test_a_job_that_slurm_holds_says_how_it_is_let_go() -> None:
    seen = job("a|9|REQUEUE_HOLD|N/A||None")
    assert seen.state is JobState.HELD
    assert "scontrol release 9" in seen.advice


@pytest.mark.parametrize("state", listing.WORDS[JobState.GONE].split())
def test_an_ended_job_is_gone_and_says_how(state: str) -> None:
    seen = job(f"a|9|{state}|2026-11-23T13:57:20|n1|None")
    assert (seen.state, seen.reason, seen.advice) == (JobState.GONE, state, "")


@pytest.mark.parametrize("first", [True, False])
def test_of_two_jobs_of_a_name_the_one_that_lives_is_shown(first: bool) -> None:
    lines = ["a|7|PENDING|N/A||Dependency", "a|8|COMPLETED|N/A|n1|None", "a|6|RUNNING|N/A|n1|None"]
    assert job("\n".join(lines if first else lines[::-1])).engine_id == "6"


def test_bars_in_a_name_or_a_reason_do_not_move_columns() -> None:
    found = listing.jobs("he|ld|9|PENDING|N/A||JobHeldUser\na|3|PENDING|N/A||a fan | is bad")
    assert found["he|ld"].engine_id == "9"
    assert found["a"].reason == "a fan | is bad"


@pytest.mark.parametrize(
    "line",
    [
        "x|1|RUNNING|2026-11-23T13:57:20|n1",
        "x|one|RUNNING|2026-11-23T13:57:20|n1|None",
        "x|1|DREAMING|2026-11-23T13:57:20|n1|None",
        "x|1|RUNNING|yesterday|n1|None",
        "x|1|RUNNING|2026-11-23T13:57:20|n[1-2|None",
        "x|1|RUNNING|2026-11-23T13:57:20|n[a-b]|None",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "",
    ],
)
def test_a_line_that_is_no_job_is_no_answer(line: str) -> None:
    with pytest.raises(EngineAway, match="not in its known form") as told:
        listing.jobs(f"{RUNNING}\n{line}\n{SOON}")
    assert repr(line) in str(told.value)


def test_gpus_by_their_type() -> None:
    room = listing.room(GPUS)
    assert room.machines == (Machines(H100, 4, (2, 4)),)
    assert (room.total, room.free, room.longest) == (8, 6, 3600.0)


def test_cores_where_there_are_no_gpus() -> None:
    room = listing.room(CORES)
    assert room.machines == (Machines(Device("cpu", 1000 * 2.0**20), 4, (3,)),)
    assert room.longest == 0.0


def test_a_machine_without_gpus_does_not_count_among_those_with() -> None:
    assert listing.room(CORES + GPUS).machines == listing.room(GPUS).machines


def test_kinds_of_machines_the_most_first() -> None:
    more = "a1|idle|gpu:a100:8(S:0-1),shard:16|gpu:a100:1(IDX:3),shard:0|0/4/0/4|4000|30:00|\n"
    room = listing.room(more + GPUS + GPUS.replace("n", "m"))
    assert [kind.device.name for kind in room.machines] == ["h100", "a100"]
    assert room.machines[1].free == (7,)
    assert room.longest == 3600.0


def test_a_gpu_may_have_no_type() -> None:
    room = listing.room("a1|idle|gpu:2|gpu:1(IDX:0)|0/4/0/4|4000|1-02:03:04|\n")
    assert room.machines == (Machines(Device("gpu"), 2, (1,)),)
    assert room.longest == ((24 + 2) * 60 + 3) * 60 + 4


@pytest.mark.parametrize("state", ["idle", "mixed", "allocated", "idle+planned", "idle+cloud"])
def test_states_that_take_jobs(state: str) -> None:
    assert listing.room(GPUS.replace("idle", state)).machines[0].free == (2, 4)


@pytest.mark.parametrize(
    "state",
    [
        *("idle+drain", "mixed+maintenance+reserved", "down", "down+not_responding", "down*"),
        *("idle*", "unknown", "allocated+drain", "idle+reserved", "idle+powering_down", "future"),
    ],
)
def test_states_that_take_no_jobs_have_nothing_free(state: str) -> None:
    assert listing.room(GPUS.replace("idle", state)).machines[0].free == (2, 0)


def test_long_names_are_not_cut() -> None:
    """As printed: the columns have no width."""
    room = listing.room(
        "averylongnodename-rack1|mixed|gpu:nvidia_h100_80gb_hbm3:4|"
        "gpu:nvidia_h100_80gb_hbm3:2(IDX:0-1)|1/3/0/4|4000|1:00:00|\n"
    )
    assert room.machines[0].device.name == "nvidia_h100_80gb_hbm3"


@pytest.mark.parametrize(
    "line",
    [
        "n3|idle|gpu:h100:4|gpu:h100:0(IDX:N/A)|0/4/0/4|4000|",
        "n3|idle|gpu:h100:four|gpu:h100:0|0/4/0/4|4000|1:00:00|",
        "n3|idle|gpu:h100:4|gpu:h100:0(|0/4/0/4|4000|1:00:00|",
        "n3|idle|gpu:h100:4|gpu:h100:0|0/4/4|4000|1:00:00|",
        "n3|idle|gpu:h100:4|gpu:h100:0|0/4/0/4|4000|soon|",
    ],
)
def test_a_line_that_is_no_machine_is_no_answer(line: str) -> None:
    with pytest.raises(EngineAway, match="sinfo answers"):
        listing.room(GPUS + line)


def test_a_partition_that_nobody_knows_is_no_empty_room() -> None:
    with pytest.raises(EngineAway, match="no machines"):
        listing.room("\n")


def test_an_estimate() -> None:
    said = "sbatch: Job 2 to start at 2026-11-23T13:57:22 using 2 processors on nodes n[1-2]"
    assert listing.start(said) == datetime(2026, 11, 23, 13, 57, 22, tzinfo=UTC)
    assert listing.start("") is None
    with pytest.raises(EngineAway):
        listing.start("sbatch: Job 2 to start at noon")


@given(st.text())
def test_no_text_is_met_with_another_error(text: str) -> None:
    for read in (listing.jobs, listing.room, listing.start):
        with suppress(EngineAway):
            read(text)
