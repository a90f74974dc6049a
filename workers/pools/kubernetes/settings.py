"""What an operator says once about their namespace."""

from collections.abc import Mapping
from dataclasses import dataclass, field

CORES = "cpu"
"""The devices of a cluster without GPUs."""


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """Where jobs go, and what every machine of a job gets beside its devices.

    pool         the submitter's name, which its jobs carry
    image        has Stageflow with its worker in it
    secret       the Secret whose keys are files `stageflow_<setting>`, such as the database's URL
    claim        the persistent volume claim that all agents share, ReadWriteMany
    queue        Kueue's LocalQueue in that namespace; "" = jobs start as soon as they fit
    device       the resource that counts devices: nvidia.com/gpu, amd.com/gpu, or cpu
    cpu, memory  of each machine, as Kubernetes writes amounts; `cpu` counts where the devices are
                 GPUs
    priority     a PriorityClass; "" = the cluster's own
    user         number of the user and the group under which agents run
    variables    what the agents are told beside their folders; no secrets
    """

    namespace: str
    pool: str
    image: str
    secret: str
    claim: str
    queue: str = ""
    device: str = "nvidia.com/gpu"
    cpu: str = "4"
    memory: str = "16Gi"
    priority: str = ""
    user: int = 10001
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_gpus(self) -> bool:
        return self.device != CORES
