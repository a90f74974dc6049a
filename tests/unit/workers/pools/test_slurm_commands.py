"""What a command's end means: programs of our own stand in for Slurm's."""

import os
from pathlib import Path

import pytest

from backend.runs.pools.job import JobOrder
from workers.pools.engine import EngineAway, OrderRefused
from workers.pools.slurm import commands
from workers.pools.slurm.engine import SlurmEngine

ORDER = JobOrder("a-1", 1, 1, 1, ("true",))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are found."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def write(folder: Path, text: str, name: str = "sbatch") -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o700)


@pytest.mark.parametrize(
    "said",
    [
        "Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "Batch job submission failed: Socket timed out on send/recv operation",
        "Batch job submission failed: Slurm backup controller in standby mode",
        "Batch job submission failed: Zero Bytes were transmitted or received",
        "Batch job submission failed: Resource temporarily unavailable",
        "Batch job submission failed: Protocol authentication error",
        "fatal: Could not establish a configuration source",
    ],
)
def test_an_order_is_not_at_fault_where_the_controller_is_away(programs: Path, said: str) -> None:
    write(programs, f'echo "sbatch: error: {said}" >&2; exit 1')
    with pytest.raises(EngineAway, match=said.partition(": ")[2][:20]) as fault:
        commands.answer(9, "sbatch")
    assert fault.value.advice


@pytest.mark.parametrize(
    "said",
    [
        "sbatch: error: Batch job submission failed: Invalid account or account/partition",
        "allocation failure: Requested node configuration is not available",
        "sbatch: fatal: --nodes=x",
    ],
)
def test_other_errors_of_sbatch_refuse_the_order_in_slurms_words(programs: Path, said: str) -> None:
    write(programs, f'echo "something first\n{said}" >&2; exit 1')
    with pytest.raises(OrderRefused) as fault:
        commands.answer(9, "sbatch")
    assert str(fault.value) == f"Slurm refuses the job: {said.rpartition(': ')[2]}"


@pytest.mark.parametrize("command", ["squeue", "sinfo", "scancel"])
def test_nothing_follows_from_an_error_of_the_others(programs: Path, command: str) -> None:
    write(programs, "")
    write(programs, "exit 3", command)
    with pytest.raises(EngineAway, match=f"{command} ended with 3"):
        commands.answer(9, command)


def test_nothing_follows_from_no_answer(programs: Path) -> None:
    write(programs, "exec /bin/sleep 60")
    with pytest.raises(EngineAway, match=r"no answer after 0\.1 s"):
        commands.answer(0.1, "sbatch")


def test_a_machine_without_slurms_commands(programs: Path) -> None:
    with pytest.raises(EngineAway, match="not on this machine"):
        commands.answer(9, "sbatch")
    write(programs, "")
    with pytest.raises(EngineAway, match="cannot be started"):
        commands.answer(9, "sinfo")


def test_variables_of_the_caller_do_not_change_the_answer(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SBATCH_PARTITION", "SQUEUE_FORMAT", "SLURM_TIME_FORMAT", "SLURM_JOB_ID"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SLURM_CONF", "here")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    write(programs, "exec /usr/bin/env")
    told = dict(line.split("=", 1) for line in commands.answer(9, "sbatch").stdout.splitlines())
    assert {name for name in told if name.startswith(commands.OURS)} == {"SLURM_CONF"}
    assert (told["TZ"], told["LC_ALL"]) == ("UTC", "C")


def test_bytes_that_are_no_text_are_read(programs: Path) -> None:
    write(programs, r"printf '\377|'")
    assert commands.answer(9, "sbatch").stdout == "�|"


def engine(folder: Path) -> SlurmEngine:
    """Of a cluster with one machine, whose queue is empty."""
    write(folder, "exec /bin/cat >/dev/null", "squeue")
    write(folder, 'echo "n1|idle|gpu:h100:4|gpu:h100:0|0/4/0/4|4000|1:00:00|"', "sinfo")
    return SlurmEngine("gpu", folder / "jobs", {})


@pytest.mark.parametrize("printed", ["7", "7;lab", "a word of the site\n7"])
def test_the_id_of_a_job(programs: Path, printed: str) -> None:
    write(programs, f"echo '{printed}'")
    assert engine(programs).submit(ORDER) == "7"


def test_an_id_that_is_none(programs: Path) -> None:
    write(programs, "echo Submitted")
    with pytest.raises(EngineAway, match="Submitted"):
        engine(programs).submit(ORDER)


@pytest.mark.parametrize("name", ["", "../a", "-a", "a b", "a,b", "a/b", "%j", "a\n", "a" * 201])
def test_a_name_that_slurm_would_take_for_something_else(programs: Path, name: str) -> None:
    write(programs, "echo 7")
    with pytest.raises(OrderRefused, match="not a name"):
        engine(programs).submit(JobOrder(name, 1, 1, 1, ("true",)))
    with pytest.raises(OrderRefused):
        engine(programs).output(name)


def test_no_job_is_submitted_where_the_queue_cannot_be_seen(programs: Path) -> None:
    """Or there might be two of a name."""
    write(programs, f"/bin/touch {programs}/submitted; echo 7")
    tried = engine(programs)
    write(programs, "exit 1", "squeue")
    with pytest.raises(EngineAway):
        tried.submit(ORDER)
    assert not os.path.exists(programs / "submitted")
