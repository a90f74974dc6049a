"""Pools over engines that start real agents."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.cluster.cluster import Device
from backend.settings import Settings
from tests.integration.pools.rig import PoolRig
from workers.pools.engine import Engine
from workers.pools.handed_down import handed_down
from workers.pools.local import LocalEngine


def local(settings: Settings) -> Engine:
    """Two machines of two devices."""
    folder = settings.home / "pool"
    given = handed_down(settings, folder / "secrets")
    return LocalEngine(folder / "jobs", 2, (Device("cpu"),) * 2, given)


@pytest.fixture
def new_pool(tmp_path: Path) -> Iterator[Callable[..., PoolRig]]:
    made: list[PoolRig] = []

    def make(engine: Callable[[Settings], Engine] = local, **options: float) -> PoolRig:
        made.append(PoolRig(tmp_path / "home", engine, **options))
        return made[-1]

    yield make
    for rig in made:
        rig.close()
