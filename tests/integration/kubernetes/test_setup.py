"""docker/kubernetes.yaml: every object is valid, and the pool's roles have what it asks for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from backend.runs.pools.job import JobOrder
from backend.setting_files import SECRETS
from tests.contract.kubelet import SETTINGS
from tests.contract.kubernetes_api import KubernetesApi, served
from workers.pools.kubernetes.engine import KubernetesEngine
from workers.pools.kubernetes.manifest import jobset

FILE = Path(__file__).parents[3] / "docker" / "kubernetes.yaml"
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all(FILE.read_text()))
OURS = [each for each in OBJECTS if each["kind"] != "LocalQueue"]
ORDER = JobOrder("stageflow-gpu-1-1", 1, 1, 1, ("true",))
Rules = set[tuple[str, str, str]]


def one(kind: str) -> dict[str, Any]:
    (found,) = [each for each in OBJECTS if each["kind"] == kind]
    return found


def granted(kind: str) -> Rules:
    return {
        (verb, group, resource)
        for rule in one(kind)["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def asked(**closed: tuple[int, str]) -> Rules:
    """All that a pool asks for in its life; `closed`: kinds that it may not list."""
    api = KubernetesApi()
    api.refuses = {("list", kind): answer for kind, answer in closed.items()}
    with served(api) as access:
        for queue in ("", "gpu"):
            engine = KubernetesEngine(replace(SETTINGS, queue=queue), access, room_every=0)
            engine.submit(ORDER)
            engine.submit(ORDER)
            engine.look()
            engine.room()
            labels = {"stageflow-pool": "gpu", "stageflow-job": ORDER.name}
            api.add("pods", f"pod{queue}", metadata={"labels": labels}, status={"phase": "Running"})
            engine.output(ORDER.name)
            engine.end(ORDER.name)
    return api.asked


@pytest.mark.parametrize("wanted", OURS, ids=lambda each: each["kind"])
def test_every_object_is_valid(wanted: dict[str, Any]) -> None:
    model = getattr(client, f"V1{wanted['kind']}").model_validate(wanted)
    assert model.model_dump(by_alias=True, exclude_none=True) == wanted


def test_the_roles_have_exactly_what_the_pool_asks_for() -> None:
    room = {("list", "", "nodes"), ("list", "", "pods")}
    quotas = ("list", "", "resourcequotas")
    assert granted("ClusterRole") == room
    assert asked() | {quotas} == granted("Role") | room
    assert quotas in asked(nodes=(403, "nodes is forbidden"))


def test_everything_is_in_the_pool_s_namespace_and_named_as_the_pool_expects() -> None:
    namespace = one("Namespace")["metadata"]["name"]
    inside = [each for each in OBJECTS if "Cluster" not in each["kind"]]
    assert {each["metadata"].get("namespace", namespace) for each in inside} == {namespace}
    words = one("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"--namespace={namespace}" in words
    assert f"--queue={one('LocalQueue')['metadata']['name']}" in words
    assert one("PersistentVolumeClaim")["metadata"]["name"] == "stageflow"


def test_the_pool_s_own_pod_has_the_rights_of_its_agents() -> None:
    pod = one("Deployment")["spec"]["template"]["spec"]
    agent = jobset(ORDER, SETTINGS)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    theirs = agent["spec"]
    assert pod["securityContext"].items() <= theirs["securityContext"].items()
    assert pod["containers"][0]["securityContext"] == theirs["containers"][0]["securityContext"]
    variables = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    assert variables[SECRETS] == mounts["secrets"]
