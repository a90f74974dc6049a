"""The one JSON file that is handed to the processes of a run (`job.json`)."""

from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.profiles.profile import Profile
from backend.runs.request.spec import RunSpec


@dataclass(frozen=True, slots=True)
class Emulation:
    """Every layer takes `scale` times its seconds in `profile` (over the device's speed), and
    every message `scale` times those that `cluster`'s links need for its bytes."""

    profile: Profile
    cluster: Cluster
    scale: float


@dataclass(frozen=True, slots=True)
class Job:
    """Everything that a rank needs; it knows no database and no queue.

    definition  path of the definition's file, readable by the ranks
    weights     path of the safetensors file to begin with ("" = none)
    checkpoint  folder of the checkpoint to go on from ("" = none), taken after `epoch` whole
                epochs and `samples` samples of the next; `own_checkpoint`: by the same run
                and plan, so that a stage goes on from its own files alone
    data        path of the data to train on, readable by the ranks ("" = none)
    tokenizer   path of the tokenizer.json, or its folder, likewise
    watched     what earlier attempts have told of the metric that `spec.stop` names, as far as
                the checkpoint; on the first host alone
    started     when the run started, in Unix seconds (0 = now)
    emulation   what to wait for instead of computing (None = compute)
    build_seconds   most that making and tracing the model may take
    folder      directory for what they write (spans, weights, profile)
    world_size  number of rank processes; RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
                come by the environment, as torchrun sets them
    """

    run_id: int
    attempt: int
    name: str
    spec: RunSpec
    definition: str
    folder: str
    world_size: int = 1
    weights: str = ""
    checkpoint: str = ""
    epoch: int = 0
    samples: int = 0
    own_checkpoint: bool = False
    emulation: Emulation | None = None
    data: str = ""
    watched: tuple[float, ...] = ()
    started: float = 0.0
    tokenizer: str = ""
    build_seconds: float = 300.0
