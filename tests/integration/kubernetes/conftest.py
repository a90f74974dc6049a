"""An engine whose official client talks to a small API server."""

from collections.abc import Iterator

import pytest

from tests.contract.kubelet import SETTINGS
from tests.contract.kubernetes_api import KubernetesApi, served
from workers.pools.kubernetes.engine import KubernetesEngine


@pytest.fixture
def api() -> KubernetesApi:
    return KubernetesApi()


@pytest.fixture
def engine(api: KubernetesApi) -> Iterator[KubernetesEngine]:
    with served(api) as client:
        yield KubernetesEngine(SETTINGS, client, room_every=0)
