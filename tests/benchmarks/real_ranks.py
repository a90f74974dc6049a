"""A training by the processes of any run, `workers.runtime.main`, and their memory as the kernel
counts it; and a profile by the process of any profile."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.codec import from_json, to_json
from backend.profiles.profile import Profile
from backend.runs.events import Event, read_line
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec, TrainSpec
from tests.benchmarks.networks import Network
from tests.benchmarks.ranks import LOCAL
from tests.ports import free_port

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Watched:
    """Bytes that each rank held at most until its training began, and in all; the losses; seconds
    from the launch until every rank's training had begun."""

    starts: tuple[int, ...]
    peaks: tuple[int, ...]
    losses: tuple[float, ...]
    begun: float


def watched(spec: TrainSpec, file: Path) -> Watched:
    """Train the definition in `file` as `spec` says, a process per rank."""
    size = spec.plan.partition.num_devices
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = Job(1, 1, "bench", spec, str(file), name, size)
        (folder / "job.json").write_bytes(to_json(Job, job))
        began, port = time.monotonic(), free_port()
        world = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        ranks = [
            _started("workers.runtime.main", folder, world | {"RANK": str(number)}, f"log-{number}")
            for number in range(size)
        ]
        starts, peaks, begun = [0] * size, [0] * size, 0.0
        while any(process.poll() is None for process in ranks):
            for number, process in enumerate(ranks):
                peaks[number] = max(peaks[number], _peak(process.pid))
                if not starts[number] and '"started"' in _log(folder / f"log-{number}"):
                    starts[number], begun = peaks[number], time.monotonic() - began
            time.sleep(0.1)
        logs = [_log(folder / f"log-{number}") for number in range(size)]
        ends = "\n".join(log[-2000:] for log in logs)
        assert not any(process.returncode for process in ranks), ends
        return Watched(tuple(starts), tuple(peaks), _losses("\n".join(logs)), begun)


@dataclass(frozen=True, slots=True)
class Told:
    """What the ranks of a training told, and the bytes that they sent at their interfaces."""

    events: tuple[Event, ...]
    sent: int


def told(spec: TrainSpec, file: Path, where: Network = LOCAL, weights: str = "") -> Told:
    """Train the definition in `file` as `spec` says, a process per rank on the hosts of `where`,
    from the safetensors file `weights`, or from weights that are drawn."""
    size = len(spec.plan.devices)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job.json").write_bytes(
            to_json(Job, Job(1, 1, "bench", spec, str(file), name, size, weights))
        )
        world = {"WORLD_SIZE": str(size), "MASTER_ADDR": where.address}
        world |= {"MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": where.interface}
        before = _sent(where, size)
        ranks = [
            _started(
                "workers.runtime.main",
                folder,
                world | {"RANK": str(n)},
                f"log-{n}",
                where.prefix[n],
            )
            for n in range(size)
        ]
        codes = [process.wait() for process in ranks]
        logs = [_log(folder / f"log-{number}") for number in range(size)]
        assert not any(codes), "\n".join(log[-2000:] for log in logs)
        lines = (read_line(line) for log in logs for line in log.splitlines())
        return Told(tuple(filter(None, lines)), _sent(where, size) - before)


def _sent(where: Network, size: int) -> int:
    """Bytes that left the interface of each host, all hosts together; of loopback its own once."""
    hosts = set(where.prefix[:size])
    file = f"/sys/class/net/{where.interface}/statistics/tx_bytes"
    return sum(int(subprocess.check_output([*prefix, "cat", file])) for prefix in hosts)


def profiled(file: Path, spec: ProfileSpec) -> Profile:
    """The profile of the definition in `file`, taken by a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = Job(1, 1, file.stem, spec, str(file), name, 1)
        (folder / "job.json").write_bytes(to_json(Job, job))
        process = _started("workers.profiler.main", folder, {}, "log")
        assert process.wait() == 0, _log(folder / "log")[-2000:]
        found: Profile = from_json(Profile, (folder / "profile.json").read_bytes())
        return found


def _started(
    module: str,
    folder: Path,
    environment: Mapping[str, str],
    log: str,
    prefix: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    whole = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [*prefix, sys.executable, "-m", module, str(folder / "job.json")]
    with (folder / log).open("wb") as lines:
        return subprocess.Popen(command, env=whole, stdout=lines, stderr=subprocess.STDOUT)


def _log(path: Path) -> str:
    return path.read_text(errors="replace")


def _peak(pid: int) -> int:
    """Bytes that the process held at most; 0 where it is over."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) << 10 if found else 0


def _losses(text: str) -> tuple[float, ...]:
    lines = (json.loads(line) for line in text.splitlines() if '"name":"loss"' in line)
    return tuple(value for line in lines for value in line["values"])
