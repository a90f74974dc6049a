"""What happens to jobs of a real Slurm: its own doing, its crashes, and people."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from backend.runs.pools.job import JobState
from tests.contract.clusters import Cluster
from tests.slurm import CONTROLLER, Slurm, wait
from workers.pools.engine import EngineAway
from workers.pools.slurm.engine import KEPT, SlurmEngine

SHOW = "import os, sys; print([os.environ.get(name, '') for name in sys.argv[1:]])"


@pytest.fixture
def cluster(slurm: Slurm, tmp_path: Path) -> Iterator[Cluster]:
    """All GPUs."""
    yield Cluster(lambda: SlurmEngine("gpu", tmp_path / "jobs", {}), tmp_path)
    slurm.clear()


def of(cluster: Cluster, partition: str, *options: str) -> Cluster:
    """Another partition's jobs."""
    folder = cluster.notes
    return Cluster(lambda: SlurmEngine(partition, folder / "jobs", {}, options), folder)


def test_an_urgent_job_takes_the_machines_and_the_agents_are_told(cluster: Cluster) -> None:
    common, urgent = cluster.order(nodes=4, devices=4), cluster.order(nodes=4, devices=4)
    cluster.run(common)
    of(cluster, "urgent").run(urgent)
    assert cluster.noted("SIGTERM") == 4
    assert cluster.state(common) is JobState.GONE  # and not in the queue again


def test_a_job_that_somebody_kills_is_gone(cluster: Cluster, slurm: Slurm) -> None:
    order = cluster.order()
    job = cluster.run(order)
    slurm.command("scancel", "--signal=KILL", "--full", job)
    cluster.until(JobState.GONE, order)
    assert cluster.seen(order).reason


def test_a_held_job_says_how_it_is_let_go(cluster: Cluster, slurm: Slurm) -> None:
    order = cluster.order()
    job = of(cluster, "gpu", "--hold").made().submit(order)
    seen = cluster.seen(order)
    assert (seen.state, seen.reason) == (JobState.HELD, "JobHeldUser")
    command = seen.advice.split("`")[1]
    assert command == f"scontrol release {job}"
    slurm.command(*command.split())
    cluster.until(JobState.RUNNING, order)


def test_what_can_never_start_says_what_to_do(cluster: Cluster) -> None:
    nodes, seconds = cluster.order(nodes=5), cluster.order(seconds=7200)
    cores, alone = cluster.order(devices=5), of(cluster, "cores")
    for where, order in ((cluster, nodes), (cluster, seconds), (alone, cores)):
        where.made().submit(order)
        where.until(JobState.HELD, order)
    assert "fewer machines" in cluster.seen(nodes).advice
    assert "less time" in cluster.seen(seconds).advice
    assert "fewer" in alone.seen(cores).advice


def test_a_partition_that_is_not_there(cluster: Cluster) -> None:
    nowhere = of(cluster, "nowhere")
    with pytest.raises(EngineAway) as fault:
        nowhere.made().submit(cluster.order())
    assert fault.value.advice


def test_jobs_of_a_machine_have_gpus_of_their_own(cluster: Cluster) -> None:
    words = (sys.executable, "-Ic", SHOW, "CUDA_VISIBLE_DEVICES", "SLURM_PROCID")
    first, second = (cluster.order(*words, nodes=4, devices=2) for _ in range(2))
    for order in (first, second):
        cluster.made().submit(order)
    for order in (first, second):
        cluster.until(JobState.GONE, order)
        lines = cluster.made().output(order.name).splitlines()
        assert {line.split("'")[3] for line in lines if "[" in line} == set("0123")
    given = {cluster.made().output(order.name).split("'")[1] for order in (first, second)}
    assert given <= {"0,1", "2,3"}


def test_without_gpus_a_job_has_cores(cluster: Cluster) -> None:
    alone = of(cluster, "cores")
    assert (alone.made().room().total, alone.made().room().longest) == (4, 0.0)
    order = cluster.order(sys.executable, "-Ic", SHOW, "SLURM_CPUS_PER_TASK", devices=3)
    alone.made().submit(order)
    alone.until(JobState.GONE, order)
    assert "['3']" in alone.made().output(order.name)


def test_a_job_is_told_what_it_shall_be_and_nothing_else(
    cluster: Cluster, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = cluster.notes / "secrets"
    secrets.mkdir(mode=0o700)
    monkeypatch.setenv("STAGEFLOW_TOKEN", "hidden")
    monkeypatch.setenv("SBATCH_PARTITION", "nowhere")
    told = {"STAGEFLOW_SHARED": "/a b/$HOME", "STAGEFLOW_SECRETS": str(secrets)}
    engine = SlurmEngine("gpu", cluster.notes / "50%j", told, ("--hold", "--nodes=3"))
    order = cluster.order(sys.executable, "-Ic", SHOW, *told, "STAGEFLOW_TOKEN")
    job = engine.submit(order)
    assert "hidden" not in slurm.command("scontrol", "write", "batch_script", job, "-")
    slurm.command("scontrol", "release", job)
    cluster.until(JobState.GONE, order)
    printed = [line for line in engine.output(order.name).splitlines() if "[" in line]
    assert printed == [repr([*told.values(), ""])]


def test_output_of_a_job_that_ended_long_ago_goes(cluster: Cluster) -> None:
    runs, before = cluster.order(), time.time() - KEPT
    cluster.run(runs)
    folder = cluster.notes / "jobs"
    (folder / "older.out").touch()
    (folder / "newer.out").touch()
    for name, seconds in (("older", -60), ("newer", 60), (runs.name, -60)):
        os.utime(folder / f"{name}.out", (before + seconds,) * 2)
    cluster.made().look()
    assert {file.stem for file in folder.iterdir()} == {"newer", runs.name}


def test_a_machine_that_takes_no_jobs_has_nothing_free(cluster: Cluster, slurm: Slurm) -> None:
    slurm.command("scontrol", "update", "nodename=n1", "state=drain", "reason=a fan | is bad")
    assert cluster.made().room().machines[0].free == (0, 4, 4, 4)
    slurm.command("scontrol", "update", "nodename=n1", "state=resume")
    wait(lambda: cluster.made().room().free == 16)


def test_a_machine_whose_daemon_crashed_has_nothing_free_and_its_job_ends(
    cluster: Cluster, slurm: Slurm
) -> None:
    order = cluster.order()
    cluster.run(order)
    lost = cluster.seen(order).hosts[0]
    slurm.kill(lost)
    try:
        cluster.until(JobState.GONE, order)
        assert cluster.seen(order).reason.startswith("NODE_FAIL")
        assert cluster.made().room().free == 12
    finally:
        slurm.start(lost)
    wait(lambda: cluster.made().room().free == 16)


def test_a_controller_that_crashed_says_nothing_about_jobs(cluster: Cluster, slurm: Slurm) -> None:
    order = cluster.order()
    job = cluster.run(order)
    slurm.until_saved(job)
    slurm.kill(CONTROLLER)
    try:
        engine = cluster.made()
        with ThreadPoolExecutor() as threads:  # each until Slurm's command itself gives up
            asked = [
                *(threads.submit(ask) for ask in (engine.look, engine.room)),
                *(threads.submit(ask, order) for ask in (engine.submit, engine.estimate)),
                threads.submit(engine.end, order.name),
            ]
        answers = [answer.exception() for answer in asked]
        assert [type(answer) for answer in answers] == [EngineAway] * 5
        assert all("contact slurm controller" in str(answer) for answer in answers)
        assert cluster.noted("SIGTERM") == 0
    finally:
        slurm.start(CONTROLLER)
    wait(lambda: slurm.command("squeue", "-h"))
    assert cluster.made().submit(order) == job
    assert cluster.state(order) is JobState.RUNNING
    assert cluster.began() == 1


def test_a_slurm_of_tests_goes_with_them(tmp_path: Path) -> None:
    """Even where these are killed: daemons, jobs and files."""
    script = (
        "import sys, time; from tests.slurm import Slurm; slurm = Slurm();"
        "slurm.command('sbatch', '-o/dev/null', '--wrap', f'touch {sys.argv[1]}; sleep 600');"
        "print(slurm.folder, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "began"], stdout=subprocess.PIPE, text=True
    ) as tests:
        try:
            assert tests.stdout
            folder = Path(tests.stdout.readline().strip())
            wait((tmp_path / "began").exists)
            assert users(folder)
        finally:
            tests.kill()
    wait(lambda: not users(folder), lambda: users(folder))
    assert not folder.exists()


def users(folder: Path) -> list[psutil.Process]:
    """Processes that were started with its settings."""
    setting = f"SLURM_CONF={folder}/slurm.conf"

    def uses(process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return setting in (f"{name}={value}" for name, value in process.environ().items())
        return False

    return [process for process in psutil.process_iter() if uses(process)]
