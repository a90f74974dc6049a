"""What an operator says once about their namespace."""

from dataclasses import dataclass

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

    @property
    def has_gpus(self) -> bool:
        return self.device != CORES
