"""What Slurm's commands print, read strictly. The columns are the same from 22.05 to 26.05; what
`--json` gives is not, and it shows no jobs where the controller is away."""

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from backend.cluster.cluster import Device
from backend.errors import InvalidInput
from backend.runs.pools.job import JobState, Seen
from backend.runs.pools.room import Machines, PoolRoom
from workers.pools.engine import EngineAway
from workers.pools.slurm.hosts import hosts
from workers.pools.slurm.reasons import advice

JOBS = "%j|%i|%T|%S|%N|%r"
"""For `squeue -o`: name, id, state, start, machines, reason. Names and reasons may have a bar."""
JOB = re.compile(r"(.*)\|(\d[^|]*)\|([A-Z_]+)\|([^|]*)\|([^|]*)\|(.*)")
MACHINES = "NodeList:|,StateComplete:|,Gres:|,GresUsed:|,CPUsState:|,Memory:|,Time:|"
"""For `sinfo -N -O`: name, state, devices, those in use, cores (in use/idle/other/all), MiB of
memory, the partition's longest time."""
MACHINE = re.compile(r"([^|]+)\|([^|]+)\|([^|]+)\|([^|]+)\|\d+/(\d+)/\d+/(\d+)\|(\d+)\|([^|]+)\|")
GRES = re.compile(r"([^:,()]+)(?::([^:,()]+))?:(\d+)[KMGTP]?(?:\([^()]*\))*(?:,|$)")
"""Of "gpu:h100:4(S:0-1),shard:8": kind, type, number."""
DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
START = re.compile(r"to start at (\S+)")
UNKNOWN = frozenset({"N/A", "Unknown", "None", "(null)", ""})

WORDS = {
    JobState.WAITING: "PENDING REQUEUED REQUEUE_FED",
    JobState.HELD: "REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT",
    JobState.RUNNING: "RUNNING CONFIGURING COMPLETING SUSPENDED STOPPED SIGNALING RESIZING "
    "STAGE_OUT POWER_UP_NODE EXPEDITING",
    JobState.GONE: "COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE "
    "OUT_OF_MEMORY REVOKED LAUNCH_FAILED RECONFIG_FAIL UPDATE_DB",
}
STATES = {word: state for state, words in WORDS.items() for word in words.split()}
ORDER = (JobState.GONE, JobState.HELD, JobState.WAITING, JobState.RUNNING)
"""Of several jobs of one name, the last of these is shown."""
TAKE_JOBS = {"idle", "mixed", "allocated", "completing", "planned"} | {
    *("cloud", "dynamic_norm", "powered_down", "powering_up")  # those started on demand
}
"""What the state of a machine that takes jobs consists of."""


def jobs(text: str) -> dict[str, Seen]:
    """By name, of the lines of `JOBS`. Raises `EngineAway` for lines that are none."""
    found: dict[str, Seen] = {}
    for line in text.splitlines():
        name, seen = _job(line)
        if name not in found or ORDER.index(found[name].state) <= ORDER.index(seen.state):
            found[name] = seen
    return found


def _job(line: str) -> tuple[str, Seen]:
    columns = JOB.fullmatch(line)
    if not columns or columns[3] not in STATES:
        raise unreadable("squeue", line)
    name, job, word, start, where, reason = columns.groups()
    state = STATES[word]
    reason = "" if reason in UNKNOWN else reason
    to_do = ""
    if state is JobState.GONE:
        reason = f"{word} {reason}".strip()
    elif state is not JobState.RUNNING:
        to_do = advice(reason if state is JobState.WAITING else word, job)
        state = JobState.HELD if to_do else state
    try:
        return name, Seen(job, state, reason, to_do, moment(start), hosts(where))
    except (ValueError, InvalidInput) as fault:
        raise unreadable("squeue", line) from fault


def room(text: str) -> PoolRoom:
    """Of the lines of `MACHINES`. Where some machines have GPUs, those alone count. Raises
    `EngineAway` for lines that are none, and where there are no lines."""
    if not text.strip():
        raise EngineAway(
            "Slurm shows no machines of the partition",
            "`sinfo` lists the partitions; start the pool with one of them.",
        )
    kinds: dict[tuple[Device, int], dict[str, int]] = defaultdict(dict)
    longest = 0.0
    for line in text.splitlines():
        columns = MACHINE.fullmatch(line)
        if not columns:
            raise unreadable("sinfo", line)
        name, state, gres, used, idle, cores, memory, longest_text = columns.groups()
        takes_jobs = set(state.split("+")) <= TAKE_JOBS
        try:
            longest = duration(longest_text)
            total, held = gpus(gres), gpus(used)
        except ValueError as fault:
            raise unreadable("sinfo", line) from fault
        for kind, number in total.items():
            free = max(number - held.get(kind, 0), 0) if takes_jobs else 0
            kinds[Device(kind), number][name] = free
        if not total and int(cores):
            device = Device("cpu", float(int(memory) * 2**20 // int(cores)))
            kinds[device, int(cores)][name] = int(idle) if takes_jobs else 0
    return PoolRoom(_largest_first(kinds), longest)


def _largest_first(kinds: dict[tuple[Device, int], dict[str, int]]) -> tuple[Machines, ...]:
    found = [Machines(kind, each, tuple(free.values())) for (kind, each), free in kinds.items()]
    only = [machines for machines in found if machines.device.name != "cpu"] or found
    return tuple(sorted(only, key=lambda machines: -machines.count * machines.devices))


def gpus(text: str) -> dict[str, int]:
    """How many of each type a column of devices has. A GPU without a type is a "gpu". Raises
    `ValueError`."""
    found: dict[str, int] = defaultdict(int)
    for kind, name, number in _devices(text):
        if kind == "gpu":
            found[name or kind] += int(number)
    return dict(found)


def _devices(text: str) -> Iterator[tuple[str, str, str]]:
    at = 0
    while at < len(text) and text not in UNKNOWN:
        if not (found := GRES.match(text, at)):
            raise ValueError(f"{text!r} are not devices")
        yield found[1], found[2] or "", found[3]
        at = found.end()


def duration(text: str) -> float:
    """Seconds of "1-02:00:00"; 0 = any. Raises `ValueError`."""
    if text in ("infinite", "UNLIMITED"):
        return 0.0
    if not (found := DURATION.fullmatch(text)):
        raise ValueError(f"{text!r} is not a duration")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def moment(text: str) -> datetime | None:
    """A time as Slurm's commands write it where the time zone is UTC. Raises `ValueError`."""
    return None if text in UNKNOWN else datetime.fromisoformat(text).replace(tzinfo=UTC)


def start(text: str) -> datetime | None:
    """When a job would start, of what `sbatch --test-only` says."""
    found = START.search(text)
    try:
        return moment(found[1]) if found else None
    except ValueError as fault:
        raise unreadable("sbatch --test-only", text) from fault


def unreadable(command: str, text: str) -> EngineAway:
    """Nothing follows from an answer that nobody can read, as from none."""
    return EngineAway(
        f"{command} answers with {text[:200]!r}, which is not in its known form",
        "Stageflow reads Slurm 22.05 to 26.05. Report the line with the version (`sinfo -V`).",
    )
