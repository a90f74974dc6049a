"""An order as a JobSet with one Indexed Job: a pod is an agent, its index is its place."""

from typing import Any

from kubernetes.client import (
    V1Capabilities,
    V1Container,
    V1EmptyDirVolumeSource,
    V1EnvVar,
    V1JobSpec,
    V1JobTemplateSpec,
    V1ObjectMeta,
    V1PersistentVolumeClaimVolumeSource,
    V1PodSecurityContext,
    V1PodSpec,
    V1PodTemplateSpec,
    V1ResourceRequirements,
    V1SeccompProfile,
    V1SecretVolumeSource,
    V1SecurityContext,
    V1Toleration,
    V1Volume,
    V1VolumeMount,
)

from backend.runs.pools.job import JobOrder
from workers.pools.kubernetes.names import AGENT, JOB, ORDER, POOL, QUEUE, RUN, dns_label
from workers.pools.kubernetes.settings import KubernetesSettings

GROUP, VERSION, PLURAL = "jobset.x-k8s.io", "v1alpha2", "jobsets"
KEPT = 3600
"""Seconds for which an ended job stays to be looked at."""
SECRETS, SHARED, HOME, SHARED_MEMORY = "/run/secrets", "/shared", "/state", "/dev/shm"
SCRATCH = {"home": HOME, "tmp": "/tmp", "memory": SHARED_MEMORY}
"""Folders that are a pod's own and go with it. Ranks on one machine talk through the last one."""


def jobset(order: JobOrder, settings: KubernetesSettings) -> dict[str, Any]:
    """What the API is sent. The cluster never restarts any of it: restarts are Stageflow's."""
    labels = {
        "app.kubernetes.io/managed-by": "stageflow",
        POOL: dns_label(settings.pool),
        JOB: dns_label(order.name),
        RUN: str(order.run_id),
    }
    queue = {QUEUE: settings.queue} if settings.queue else {}
    job = V1JobTemplateSpec(
        metadata=V1ObjectMeta(labels=labels), spec=_job(order, settings, labels)
    )
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "JobSet",
        "metadata": {
            "name": dns_label(order.name),
            "namespace": settings.namespace,
            "labels": labels | queue,
            "annotations": {ORDER: order.name},
        },
        "spec": {
            "failurePolicy": {"maxRestarts": 0},
            # agents find each other through the database, so no Service is needed
            "network": {"enableDNSHostnames": False},
            "ttlSecondsAfterFinished": KEPT,
            "replicatedJobs": [
                {
                    "name": AGENT,
                    "replicas": 1,
                    "template": job.model_dump(by_alias=True, exclude_none=True),
                }
            ],
        },
    }


def _job(order: JobOrder, settings: KubernetesSettings, labels: dict[str, str]) -> V1JobSpec:
    return V1JobSpec(
        completions=order.nodes,
        parallelism=order.nodes,
        completion_mode="Indexed",
        backoff_limit=0,
        active_deadline_seconds=_told_after(order),
        template=V1PodTemplateSpec(
            metadata=V1ObjectMeta(labels=labels), spec=_pod(order, settings)
        ),
    )


def _told_after(order: JobOrder) -> int | None:
    """Pods are told at their Job's deadline, and have the warning until they are killed."""
    return max(1, round(order.seconds - order.warning)) if order.seconds else None


def _pod(order: JobOrder, settings: KubernetesSettings) -> V1PodSpec:
    return V1PodSpec(
        restart_policy="Never",
        termination_grace_period_seconds=max(1, round(order.warning)),
        priority_class_name=settings.priority or None,
        automount_service_account_token=False,
        # a Service named stageflow would set STAGEFLOW_PORT to a URL
        enable_service_links=False,
        security_context=V1PodSecurityContext(
            run_as_non_root=True,
            run_as_user=settings.user,
            run_as_group=settings.user,
            fs_group=settings.user,
            # without it, every file of the claim is given to the group again at each start
            fs_group_change_policy="OnRootMismatch",
            seccomp_profile=V1SeccompProfile(type="RuntimeDefault"),
        ),
        tolerations=[V1Toleration(key=settings.device, operator="Exists", effect="NoSchedule")]
        if settings.has_gpus
        else None,
        containers=[_container(order, settings)],
        volumes=[
            V1Volume(
                name="secrets",
                secret=V1SecretVolumeSource(secret_name=settings.secret, default_mode=0o440),
            ),
            V1Volume(
                name="shared",
                persistent_volume_claim=V1PersistentVolumeClaimVolumeSource(
                    claim_name=settings.claim
                ),
            ),
            *(V1Volume(name=name, empty_dir=_scratch(at)) for name, at in SCRATCH.items()),
        ],
    )


def _scratch(at: str) -> V1EmptyDirVolumeSource:
    return V1EmptyDirVolumeSource(medium="Memory" if at == SHARED_MEMORY else None)


def _container(order: JobOrder, settings: KubernetesSettings) -> V1Container:
    devices = {settings.device: str(order.devices)}
    amounts = {"cpu": settings.cpu, "memory": settings.memory} | devices
    return V1Container(
        name=AGENT,
        image=settings.image,
        command=list(order.command),
        env=[V1EnvVar(name=n, value=text) for n, text in _environment(order, settings).items()],
        # as much as the limits: such pods are the last to be evicted
        resources=V1ResourceRequirements(requests=amounts, limits=amounts),
        security_context=V1SecurityContext(
            allow_privilege_escalation=False,
            read_only_root_filesystem=True,
            capabilities=V1Capabilities(drop=["ALL"]),
        ),
        # the last lines are the reason where an agent did not come as far as its log
        termination_message_policy="FallbackToLogsOnError",
        volume_mounts=[
            V1VolumeMount(name="secrets", mount_path=SECRETS, read_only=True),
            V1VolumeMount(name="shared", mount_path=SHARED),
            *(V1VolumeMount(name=name, mount_path=at) for name, at in SCRATCH.items()),
        ],
    )


def _environment(order: JobOrder, settings: KubernetesSettings) -> dict[str, str]:
    """No secrets. A pod sees all cores of its machine, so it is told how many it has; GPUs that are
    not its own it does not see."""
    folders = {"STAGEFLOW_SECRETS": SECRETS, "STAGEFLOW_SHARED": SHARED, "STAGEFLOW_HOME": HOME}
    cores = {} if settings.has_gpus else {"STAGEFLOW_DEVICES": str(order.devices)}
    return {**settings.variables, **folders, "HOME": HOME, **cores}
