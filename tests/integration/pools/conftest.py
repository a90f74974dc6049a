"""Pools over engines that start real agents."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from backend.cluster.cluster import Device
from backend.settings import Settings
from tests.integration.pools.rig import UPDATES, PoolRig
from tests.slurm import Slurm
from workers.node_agent import NodeAgent
from workers.pools.engine import Engine
from workers.pools.handed_down import handed_down
from workers.pools.local import LocalEngine
from workers.pools.slurm.engine import SlurmEngine

ROOT = Path(__file__).parents[3]
Losses = list[tuple[int, float]]


def local(settings: Settings) -> Engine:
    """Two machines of two devices."""
    folder = settings.home / "pool"
    given = handed_down(settings, folder / "secrets")
    return LocalEngine(folder / "jobs", 2, (Device("cpu"),) * 2, given)


def in_slurm(settings: Settings) -> Engine:
    """The partition with four machines of four GPUs."""
    folder = settings.shared_folder / "pool"
    told = {**handed_down(settings, folder / "secrets"), "PYTHONPATH": str(ROOT)}
    return SlurmEngine("gpu", folder / "jobs", told)


@pytest.fixture
def new_pool(tmp_path: Path) -> Iterator[Callable[..., PoolRig]]:
    made: list[PoolRig] = []

    def make(engine: Callable[[Settings], Engine] = local, **options: float) -> PoolRig:
        made.append(PoolRig(tmp_path / "home", engine, **options))
        return made[-1]

    yield make
    for rig in made:
        rig.close()


@pytest.fixture
def slurm_rig(new_pool: Callable[..., PoolRig], slurm: Slurm) -> PoolRig:
    """With somebody who submits, in a partition without jobs. The lease outlasts any load of this
    machine."""
    slurm.clear()
    rig = new_pool(in_slurm, lease=30)
    rig.begin()
    return rig


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Losses]:
    """The losses of a training of so many updates to which nothing happens, carried by a node's
    own agent."""

    @cache
    def losses(updates: int = UPDATES) -> Losses:
        rig = PoolRig(tmp_path_factory.mktemp("node"), local)
        agent = NodeAgent(rig.backend)
        agent.start()
        run = rig.submit(replace(rig.training(1, updates), pool=None))
        rig.until_final(run.id)
        agent.stop()
        agent.join()
        found = rig.curve(run.id)
        rig.close()
        assert len(found) == updates
        return found

    return losses
