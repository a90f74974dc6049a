"""How much of this machine and of its GPUs is in use, asked without importing torch."""

import shutil
import subprocess
from collections.abc import Container
from dataclasses import dataclass

import psutil

from backend.runs.dispatch.nodes import Use

QUERY = (
    "nvidia-smi",
    "--query-gpu=index,uuid,mig.mode.current,"
    "name,utilization.gpu,memory.used,memory.total,temperature.gpu",
    "--format=csv,noheader,nounits",
)
SECONDS = 5.0
MIB = 1024**2


@dataclass(frozen=True, slots=True)
class Gpu:
    """One that nvidia-smi lists: its number there, its UUID ("GPU-..."), and whether it is cut into
    slices (MIG)."""

    index: int
    uuid: str
    is_sliced: bool
    use: Use

    def goes_by(self, name: str) -> bool:
        """Whether CUDA_VISIBLE_DEVICES may call it so: by its number, or by the beginning of its
        UUID."""
        return name == str(self.index) or (name.startswith("GPU-") and self.uuid.startswith(name))


def use(shown: Container[str]) -> tuple[Use, ...]:
    """The machine's use since the last call, then that of each GPU now whose UUID is `shown`."""
    return (machine(), *(gpu.use for gpu in gpus() if gpu.uuid in shown))


def machine() -> Use:
    """All cores and the main memory; 0 at the first call."""
    memory = psutil.virtual_memory()
    return Use(
        "machine",
        psutil.cpu_percent() / 100,
        float(memory.total - memory.available),
        float(memory.total),
        hottest(),
    )


def hottest() -> float | None:
    """The highest temperature that the system tells; None where it tells none."""
    if not hasattr(psutil, "sensors_temperatures"):  # macOS
        return None
    groups = psutil.sensors_temperatures().values()
    return max((float(sensor.current) for group in groups for sensor in group), default=None)


def gpus(seconds: float = SECONDS) -> tuple[Gpu, ...]:
    """By nvidia-smi; none where it is missing, fails or takes too long."""
    if shutil.which(QUERY[0]) is None:
        return ()
    try:
        answer = subprocess.run(QUERY, capture_output=True, text=True, timeout=seconds, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse(answer.stdout)


def parse(table: str) -> tuple[Gpu, ...]:
    """Lines "number, UUID, Enabled or not, name, %, MiB, MiB, degrees"; None where the driver gives
    no number ("[N/A]")."""
    found = []
    for line in filter(str.strip, table.splitlines()):
        index, uuid, sliced, rest = line.split(",", 3)
        name, share, memory, total, celsius = rest.rsplit(",", 4)
        used = Use(
            name.strip(),
            _number(share, 0.01),
            _number(memory, MIB),
            _number(total, MIB),
            _number(celsius),
        )
        found.append(Gpu(int(index), uuid.strip(), sliced.strip() == "Enabled", used))
    return tuple(found)


def _number(text: str, factor: float = 1.0) -> float | None:
    return float(text) * factor if text.strip().isdigit() else None
