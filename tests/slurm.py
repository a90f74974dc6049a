"""A real Slurm of one's own: a controller, four virtual nodes with four GPUs each and one
without, as the user who calls. It needs no systemd, no munge, no accounting and no cgroups."""

import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

import psutil
import pytest

from tests import keeper

NODES = ("n1", "n2", "n3", "n4", "c1")
GPUS = ("null", "zero", "full", "random")
"""Devices that every machine has: of a GPU's device, Slurm wants to know only that it is one."""
CONTROLLER = "slurmctld"
PORTS = range(20_000, 32_000)
"""Below those that Linux hands out by itself: a daemon that comes back finds its own still free."""
PROGRAMS = f"{os.environ['PATH']}:/usr/sbin:/usr/bin:/sbin"
CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=4
KillWait=2
MessageTimeout=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
NodeName=n[1-4] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=4 \
  RealMemory=4000 Gres=gpu:h100:4
NodeName=c1 NodeHostname={host} NodeAddr=127.0.0.1 Port={after} CPUs=4 RealMemory=4000
PartitionName=gpu Nodes=n[1-4] Default=YES MaxTime=1:00:00 DefMemPerCPU=100 PriorityTier=1 \
  GraceTime=2
PartitionName=urgent Nodes=n[1-4] MaxTime=1:00:00 DefMemPerCPU=100 PriorityTier=9 PreemptMode=OFF
PartitionName=pair Nodes=n[1-2] MaxTime=1:00:00 DefMemPerCPU=100
PartitionName=cores Nodes=c1 MaxTime=INFINITE DefMemPerCPU=100
"""


class Slurm:
    """`command` runs one of Slurm's; a daemon is known by its node's name."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(prefix="stageflow-slurm-"))
        self._pids: dict[str, int] = {}
        self._env = {**os.environ, "SLURM_CONF": str(self.conf), "PATH": PROGRAMS}
        self._write_settings(_free_ports(len(NODES) + 1))
        self._keeper = subprocess.Popen(
            [sys.executable, keeper.__file__, str(self.folder)],
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is pytest's alone
        )
        for name in (CONTROLLER, *NODES):
            self.start(name)
        self.until_idle()

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    def _write_settings(self, port: int) -> None:
        for name in ("state", "run", "log", *(f"spool/{node}" for node in NODES)):
            (self.folder / name).mkdir(parents=True)
        self.conf.write_text(
            CONF.format(
                host=socket.gethostname().partition(".")[0],
                user=pwd.getpwuid(os.getuid()).pw_name,
                folder=self.folder,
                port=port,
                first=port + 1,
                last=port + 4,
                after=port + 5,
            )
        )
        devices = (f"NodeName=n[1-4] Name=gpu Type=h100 File=/dev/{name}\n" for name in GPUS)
        (self.folder / "gres.conf").write_text("".join(devices))
        if _version() >= (24, 5):  # which do not start without; older ones do not know it
            (self.folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")

    def start(self, name: str, *options: str) -> None:
        """A daemon, the first time or again."""
        program, *more = (name,) if name == CONTROLLER else ("slurmd", "-N", name)
        more.extend(options)
        out = self.folder / "log" / f"{name}.out"
        command = [out, _program(program), "-D", "-f", self.conf, *more]
        assert self._keeper.stdin
        assert self._keeper.stdout
        print(json.dumps([str(word) for word in command]), file=self._keeper.stdin, flush=True)
        self._pids[name] = int(self._keeper.stdout.readline())

    def kill(self, name: str) -> None:
        """A daemon alone, as if its program had crashed; jobs stay. Its port is closed by the last
        of its threads, which may outlive the first."""
        daemon = psutil.Process(self._pids.pop(name))
        daemon.kill()
        wait(lambda: daemon.status() == psutil.STATUS_ZOMBIE and daemon.num_threads() == 1)

    def command(self, *words: str) -> str:
        """What one of Slurm's commands prints. It is asked again while it fails: a controller on a
        busy machine misses the MessageTimeout, and what it was told is not done."""
        said: list[subprocess.CompletedProcess[str]] = []

        def is_done() -> bool:
            said.append(subprocess.run(words, env=self._env, capture_output=True, text=True))
            return not said[-1].returncode

        wait(is_done, lambda: f"{' '.join(words)}: {said[-1].stderr}\n{self.logs()}")
        return said[-1].stdout.strip()

    def is_idle(self) -> bool:
        return set(self.command("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"}

    def until_idle(self) -> None:
        """Until every node is there and has no job."""
        wait(self.is_idle, self.logs)

    def until_saved(self, job: str) -> None:
        """Until the controller has written down what it knows of this job now. It does so within
        5 s of a change, and not at all where nothing has changed: so something is."""
        file, now = self.folder / "state" / "job_state", time.time()
        self.command("scontrol", "update", f"jobid={job}", f"comment={now}")

        def is_saved() -> bool:
            with suppress(FileNotFoundError):  # it puts a new file in the place of the old one
                return file.stat().st_mtime > now
            return False

        wait(is_saved, self.logs)

    def clear(self) -> None:
        """All jobs away, and their GPUs free: where a job ends after its controller came back and
        before its machine registers, 22.05 counts its GPUs as used until it begins anew."""
        self.command("scancel", "-u", str(os.getuid()))
        self.until_idle()
        if self.has_gpus_in_use():
            self.kill(CONTROLLER)
            self.start(CONTROLLER, "-c")  # it forgets what it knew of jobs
            wait(lambda: self.is_idle() and not self.has_gpus_in_use(), self.logs)

    def has_gpus_in_use(self) -> bool:
        used = self.command("sinfo", "-h", "-N", "-O", "GresUsed:64")
        return bool(re.search(r"gpu\S*:[1-9]", used))

    def logs(self) -> str:
        files = sorted((self.folder / "log").iterdir())
        return "\n".join(f"{file.name}: {file.read_text()[-1500:]}" for file in files)

    def close(self) -> None:
        """With whatever its jobs have left behind."""
        assert self._keeper.stdin
        self._keeper.stdin.close()
        self._keeper.wait(240)


def wait(
    holds: Callable[[], object], why: Callable[[], object] = str, seconds: float = 240.0
) -> None:
    """Until it `holds`, with `why` it may not have come to that."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, why()
        time.sleep(0.05)


def _version() -> tuple[int, ...]:
    said = subprocess.run([_program(CONTROLLER), "-V"], capture_output=True, text=True).stdout
    return tuple(int(part) for part in said.split()[-1].split(".")[:2])


def _program(name: str) -> str | None:
    return shutil.which(name, path=PROGRAMS)


def _free_ports(more: int) -> int:
    """The first of consecutive free ports: a node line wants a range of them."""
    step = more + 1
    at = os.getpid() * step % len(PORTS)
    for first in (*PORTS[at:-step:step], *PORTS[:at:step]):
        with ExitStack() as held, suppress(OSError):
            for port in range(first, first + more + 1):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise OSError("no free ports")


@contextmanager
def slurm() -> Iterator[Slurm]:
    """Skips where Slurm is not installed. Its commands reach it until the block's end."""
    if not all(map(_program, (CONTROLLER, "slurmd", "sbatch"))):
        pytest.skip("Slurm is not installed here: make packages")
    with pytest.MonkeyPatch.context() as patch, closing(Slurm()) as started:
        patch.setenv("SLURM_CONF", str(started.conf))
        yield started
