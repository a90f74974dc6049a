"""Manifests are checked strictly: an unknown field, at any depth, is a fault."""

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1JobTemplateSpec
from pydantic import ValidationError

from backend.runs.pools.job import JobOrder
from workers.pools.kubernetes.manifest import jobset
from workers.pools.kubernetes.names import LONGEST, dns_label
from workers.pools.kubernetes.settings import KubernetesSettings

SCHEMA = json.loads((Path(__file__).parent / "jobset.schema.json").read_text())
SETTINGS = KubernetesSettings(
    namespace="team",
    pool="gpu",
    image="stageflow:1",
    secret="stageflow",
    claim="stageflow",
    queue="gpu",
    priority="research",
)
ORDER = JobOrder("stageflow-gpu-12-1", 12, 2, 4, ("stageflow", "worker"), seconds=3600.0)
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=80)
likely = st.from_regex(r"[a-zA-Z0-9-]{1,60}", fullmatch=True)
names = texts | likely
orders = st.builds(
    JobOrder,
    name=names,
    run_id=st.integers(1, 2**31),
    nodes=st.integers(1, 4096),
    devices=st.integers(1, 64),
    command=st.lists(texts, min_size=1, max_size=6).map(tuple),
    seconds=st.just(0.0) | st.floats(1, 1e7),
    warning=st.floats(0, 3600),
)
places = st.builds(
    KubernetesSettings,
    namespace=st.just("team"),
    pool=names,
    image=texts,
    secret=st.just("s"),
    claim=st.just("c"),
    queue=st.sampled_from(["", "gpu"]),
    device=st.sampled_from(["nvidia.com/gpu", "amd.com/gpu", "cpu"]),
    priority=st.sampled_from(["", "high"]),
    variables=st.dictionaries(st.sampled_from(["STAGEFLOW_LEASE", "STAGEFLOW_HOME"]), texts),
)


def check(manifest: dict[str, Any]) -> V1JobTemplateSpec:
    """The job template, where the whole manifest is valid."""
    jsonschema.validate(manifest, SCHEMA)
    template = manifest["spec"]["replicatedJobs"][0]["template"]
    model = V1JobTemplateSpec.model_validate(template)
    assert model.model_dump(by_alias=True, exclude_none=True) == template
    return model


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return found["spec"]


@given(orders, places)
def test_every_manifest_is_valid(order: JobOrder, settings: KubernetesSettings) -> None:
    manifest = jobset(order, settings)
    job = check(manifest).spec
    assert job is not None
    assert job.completions == job.parallelism == order.nodes
    assert job.active_deadline_seconds is None or job.active_deadline_seconds >= 1
    pod = job.template.spec
    assert pod is not None
    mounted = {mount.name for mount in pod.containers[0].volume_mounts or ()}
    assert mounted == {volume.name for volume in pod.volumes or ()}
    assert manifest["metadata"]["annotations"]["stageflow-order"] == order.name
    assert json.loads(json.dumps(manifest)) == manifest


@given(orders, places)
def test_names_of_pods_are_dns_labels(order: JobOrder, settings: KubernetesSettings) -> None:
    """As JobSet's webhook computes the longest of them."""
    name = jobset(order, settings)["metadata"]["name"]
    pod = f"{name}-agent-0-{order.nodes - 1}-abcde"
    assert len(pod) <= 63
    assert DNS_LABEL.fullmatch(pod)


@given(st.sets(names, min_size=2))
def test_other_orders_have_other_names(orders: set[str]) -> None:
    found = {dns_label(name) for name in orders}
    assert len(found) == len(orders)
    assert all(DNS_LABEL.fullmatch(name) and len(name) <= LONGEST for name in found)


@given(names)
def test_a_name_that_was_made_safe_is_not_anothers_own(name: str) -> None:
    safe = dns_label(name)
    assert safe == name or dns_label(safe) != safe


def test_a_name_that_is_a_label_stays() -> None:
    assert dns_label("stageflow-gpu-12-1") == "stageflow-gpu-12-1"
    assert dns_label("Nights 1").startswith("nights-1--")


def test_the_cluster_never_restarts_a_job() -> None:
    spec = jobset(ORDER, SETTINGS)["spec"]
    assert spec["failurePolicy"] == {"maxRestarts": 0}
    job = spec["replicatedJobs"][0]["template"]["spec"]
    assert job["backoffLimit"] == 0
    assert job["completionMode"] == "Indexed"
    assert job["template"]["spec"]["restartPolicy"] == "Never"


def test_agents_are_told_a_warning_before_the_end() -> None:
    job = jobset(ORDER, SETTINGS)["spec"]["replicatedJobs"][0]["template"]["spec"]
    grace = job["template"]["spec"]["terminationGracePeriodSeconds"]
    assert (job["activeDeadlineSeconds"], grace) == (3480, 120)


def test_pods_have_the_rights_of_nobody() -> None:
    pod = pod_of(jobset(ORDER, SETTINGS))
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_secrets_are_files_of_the_settings_folder() -> None:
    pod = pod_of(jobset(ORDER, SETTINGS))
    folder = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    assert folder["STAGEFLOW_SECRETS"] == mounts["secrets"]
    assert folder["STAGEFLOW_SHARED"] == mounts["shared"]
    assert pod["volumes"][0]["secret"]["secretName"] == "stageflow"
    assert pod["volumes"][1]["persistentVolumeClaim"] == {"claimName": "stageflow"}


def test_devices_are_requested_and_limited() -> None:
    resources = pod_of(jobset(ORDER, SETTINGS))["containers"][0]["resources"]
    assert resources["limits"] == resources["requests"]
    assert resources["limits"] == {"nvidia.com/gpu": "4", "cpu": "4", "memory": "16Gi"}


def test_cores_are_devices_where_there_are_no_gpus() -> None:
    settings = KubernetesSettings("team", "p", "i", "s", "c", device="cpu", cpu="99")
    container = pod_of(jobset(ORDER, settings))["containers"][0]
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "16Gi"}
    assert {"name": "STAGEFLOW_DEVICES", "value": "4"} in container["env"]


def test_kueue_finds_its_queue() -> None:
    label = "kueue.x-k8s.io/queue-name"
    assert jobset(ORDER, SETTINGS)["metadata"]["labels"][label] == "gpu"
    without = KubernetesSettings("team", "p", "i", "s", "c")
    assert label not in jobset(ORDER, without)["metadata"]["labels"]


SPOILT = [
    ("spec", "replicatedJob"),
    ("spec", "network", "enableDnsHostnames"),
    ("spec", "replicatedJobs", 0, "replica"),
    ("spec", "replicatedJobs", 0, "template", "spec", "completionmode"),
    ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "restartpolicy"),
    ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "containers", 0, "imag"),
]


@pytest.mark.parametrize("path", SPOILT, ids=lambda path: path[-1])
def test_an_unknown_field_is_found(path: tuple[str | int, ...]) -> None:
    manifest: Any = deepcopy(jobset(ORDER, SETTINGS))
    inner = manifest
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = "x"
    with pytest.raises((jsonschema.ValidationError, ValidationError)):
        check(manifest)
