"""An engine on a small API server."""

from collections.abc import Iterator

import pytest

from tests.contract.kubernetes_api import KubernetesApi, served
from workers.pools.kubernetes.engine import KubernetesEngine
from workers.pools.kubernetes.settings import KubernetesSettings

SETTINGS = KubernetesSettings(
    namespace="team", pool="gpu", image="registry.example/stageflow:1", secret="s", claim="c"
)


@pytest.fixture
def api() -> KubernetesApi:
    return KubernetesApi()


@pytest.fixture
def engine(api: KubernetesApi) -> Iterator[KubernetesEngine]:
    with served(api) as client:
        yield KubernetesEngine(SETTINGS, client)
