"""How much of this machine and of its GPUs is in use, asked without importing torch."""

import shutil
import subprocess
import time
from collections.abc import Container
from dataclasses import dataclass

import psutil

from backend.runs.use import Use

QUERY = (
    "nvidia-smi",
    "--query-gpu=index,uuid,mig.mode.current,"
    "name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw",
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


class NodeUseMeter:
    """Each call tells of the time since the one before."""

    def __init__(self) -> None:
        self._before = time.monotonic(), *traffic()

    def __call__(self, shown: Container[str]) -> tuple[Use, ...]:
        """The machine's use, then that of each GPU now whose UUID is `shown`."""
        return (self.machine(), *(gpu.use for gpu in gpus() if gpu.uuid in shown))

    def machine(self) -> Use:
        """All cores, the main memory and the network; 0 at the first call."""
        memory = psutil.virtual_memory()
        then, sent_then, received_then = self._before
        self._before = now, sent, received = time.monotonic(), *traffic()
        seconds = max(now - then, 1e-6)
        return Use(
            "machine",
            psutil.cpu_percent() / 100,
            float(memory.total - memory.available),
            float(memory.total),
            hottest(),
            received=max(0, received - received_then) / seconds,
            sent=max(0, sent - sent_then) / seconds,
        )


def traffic() -> tuple[int, int]:
    """Bytes that the machine has sent and received, but to itself."""
    each = psutil.net_io_counters(pernic=True)
    outer = [counted for name, counted in each.items() if not name.startswith("lo")]
    return sum(one.bytes_sent for one in outer), sum(one.bytes_recv for one in outer)


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
    """Lines "number, UUID, Enabled or not, name, %, MiB, MiB, degrees, watts"; None where the
    driver gives no number ("[N/A]")."""
    found = []
    for line in filter(str.strip, table.splitlines()):
        index, uuid, sliced, rest = line.split(",", 3)
        name, share, memory, total, celsius, watts = rest.rsplit(",", 5)
        used = Use(
            name.strip(),
            _number(share, 0.01),
            _number(memory, MIB),
            _number(total, MIB),
            _number(celsius),
            watts=_number(watts),
        )
        found.append(Gpu(int(index), uuid.strip(), sliced.strip() == "Enabled", used))
    return tuple(found)


def _number(text: str, factor: float = 1.0) -> float | None:
    try:
        return float(text) * factor
    except ValueError:
        return None
