"""How a pool reaches its cluster, and what it says where it cannot."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.errors import InvalidInput
from backend.settings import Settings
from tests.contract.kubernetes_api import KubernetesApi, served
from tests.migrated import migrated
from workers.pools.kubernetes.api import ClusterApi, connected


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return file


def config(server: str) -> str:
    context = {"name": "lab", "context": {"cluster": "lab", "user": "me"}}
    return json.dumps(
        {
            "current-context": "lab",
            "contexts": [context],
            "clusters": [{"name": "lab", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"token": "t"}}],
        }
    )


@pytest.mark.parametrize("context", ["", "lab"])
def test_by_the_kubeconfig(kubeconfig: Path, context: str) -> None:
    with served(KubernetesApi()) as client:
        kubeconfig.write_text(config(client.configuration.host))
        assert ClusterApi(connected(context), "team").jobsets("") == ()


@pytest.mark.parametrize("text", ["{{{", "[]", "word", "a: 1", "\x00", ""], ids=repr)
def test_a_kubeconfig_that_is_none(kubeconfig: Path, text: str) -> None:
    kubeconfig.write_text(text)
    with pytest.raises(InvalidInput, match="no access") as caught:
        connected()
    assert "KUBECONFIG" in caught.value.advice


def test_a_context_that_is_not_there(kubeconfig: Path) -> None:
    kubeconfig.write_text(config("https://127.0.0.1:1"))
    with pytest.raises(InvalidInput, match="elsewhere"):
        connected("elsewhere")


@pytest.mark.slow
def test_a_pool_without_access_says_so_and_ends(kubeconfig: Path, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    migrated(settings)
    said = subprocess.run(
        [sys.executable, "-m", "app.cli", "pool", "kubernetes", "--namespace", "team", "--image=i"],
        env=os.environ | {"STAGEFLOW_HOME": str(settings.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 1
    assert "no access to a Kubernetes cluster" in said.stderr
    assert "Traceback" not in said.stderr
