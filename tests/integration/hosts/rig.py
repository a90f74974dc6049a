"""Several hosts on one machine: network namespaces on a bridge, each with an agent and a clock
of its own; the database and Redis are reached through the file system, as one address would be."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import psutil

from backend.bootstrap import Backend, connect
from backend.queue.embedded import EmbeddedRedis
from backend.runs.request.spec import RunSpec
from backend.runs.run import Run
from backend.settings import Settings
from tests.migrated import migrated

NETWORK = "10.93.7"
AHEAD = 1000
"""Seconds by which each host's clock is ahead of the one before."""
LEASE = 60
"""Seconds, so that agents may stand still for long: who is lost is known by other means."""
AGENT = "workers.agent"
_NUMBERS = count()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _machine(name: str) -> list[str]:
    """What starts a program that has a host's name and processes of its own."""
    rename = "import os, socket, sys; socket.sethostname(sys.argv[1]); os.execv(sys.argv[2], "
    spaces = ["unshare", "--uts", "--pid", "--fork", "--mount-proc"]
    return [*spaces, sys.executable, "-c", f"{rename}sys.argv[2:])", name]


def _clocks_differ() -> bool:
    """Whether this machine has namespaces of time."""
    command = ["unshare", "--time", "--monotonic", "10", "true"]
    return shutil.which("unshare") is not None and not subprocess.run(command).returncode


class Hosts:
    """Nodes "host-0", "host-1" ...; `close` takes everything away again."""

    def __init__(self, folder: Path, number: int, lease: float = LEASE) -> None:
        mark = f"sf{os.getpid() % 10_000}x{next(_NUMBERS)}"
        self.names = [f"host-{host}" for host in range(number)]
        self._spaces = [f"{mark}-{host}" for host in range(number)]
        self._hub = f"{mark}-hub"
        self._agents: dict[str, subprocess.Popen[bytes]] = {}
        self._sharing: set[str] = set()
        self._is_one_home = False
        self._network()
        self._folder = folder
        home = folder / "host-0"
        settings = Settings(home=home, node="test", heartbeat=0.5, lease=lease)
        migrated(settings)
        self.settings = settings
        self.backend: Backend = connect(settings)
        self.redis = EmbeddedRedis(settings)
        self.redis.start()

    def _network(self) -> None:
        _ip("netns", "add", self._hub)
        _ip("-n", self._hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self._hub, "link", "set", "bridge", "up")
        for host, space in enumerate(self._spaces):
            _ip("netns", "add", space)
            port = ("type", "veth", "peer", "name", f"port{host}", "netns", self._hub)
            _ip("-n", space, "link", "add", "wire", *port)
            _ip("-n", space, "addr", "add", f"{NETWORK}.{host + 1}/24", "dev", "wire")
            _ip("-n", space, "link", "set", "wire", "up")
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", self._hub, "link", "set", f"port{host}", "master", "bridge", "up")

    def start(self, program: str = AGENT) -> None:
        """An agent on every host."""
        for name in self.names:
            self.begin(name, program)
        self.wait(lambda: len(self.alive) == len(self.names))

    def begin(self, name: str, program: str = AGENT, node: str = "") -> None:
        """Start the agent of this host, under the name of another one where `node` is: a module
        that Python runs."""
        host = self.names.index(name)
        fields = {
            "HOME": str(self._home(name)),
            "SHARED": str(self.settings.shared_folder) if name in self._sharing else "",
            "NODE": node or name,
            "NODE_ADDRESS": f"{NETWORK}.{host + 1}",
            "DATABASE_URL": self.settings.sql_url,
            "REDIS_URL": self.settings.broker_url,
            "HEARTBEAT": "0.5",
            "LEASE": str(self.settings.lease),
        }
        clock = ["unshare", "--time", "--monotonic", str(AHEAD * host)]
        command = ["ip", "netns", "exec", self._spaces[host]]
        command += clock if _clocks_differ() else []
        command += _machine(name) if self._is_one_home or node else []
        with (self._folder / f"{name}.log").open("ab") as output:
            self._agents[name] = subprocess.Popen(
                [*command, sys.executable, "-m", program],
                env=os.environ | {f"STAGEFLOW_{k}": v for k, v in fields.items()},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def share_files(self, name: str) -> None:
        """Let this host have its checkpoints and artifacts where the first one has them, as on
        a network's file system; before its agent is begun."""
        self._sharing.add(name)

    def share_home(self) -> None:
        """Let all hosts, wrongly, have the first one's home, none of which sees the others'
        processes; before their agents are begun."""
        self._is_one_home = True

    def _home(self, name: str) -> Path:
        return self._folder / (self.names[0] if self._is_one_home else name)

    @property
    def alive(self) -> list[str]:
        return sorted(node.name for node in self.backend.nodes.list() if node.alive)

    def kill(self, name: str) -> None:
        """The agent and whatever it started, at once, as a machine that loses its power."""
        os.killpg(self._agents[name].pid, signal.SIGKILL)

    def log(self, name: str) -> str:
        """What its agents said."""
        file = self._folder / f"{name}.log"
        return file.read_text() if file.exists() else ""

    def tell(self, name: str, number: signal.Signals) -> None:
        """The signal to the agent and every process below it, as Slurm sends it."""
        starter = psutil.Process(self._agents[name].pid)
        for process in (starter, *starter.children(recursive=True)):
            with suppress(psutil.Error):  # the one before may have ended it
                if process.name() not in {"ip", "unshare"}:
                    process.send_signal(number)

    def left(self, name: str) -> int:
        """The exit code of its agent, once that has ended by itself."""
        return self._agents[name].wait(240)

    def ranks_of(self, run_id: int) -> list[int]:
        """Processes of the run on any host, by its folder in their environment."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                home = process.environ().get("HOME", "")
                if any(home.startswith(f"{folder}/") for folder in self._run_folders(run_id)):
                    found.append(process.pid)
        return found

    def _run_folders(self, run_id: int) -> list[Path]:
        attempts = range(1, self.backend.runs.get(run_id).attempt + 1)
        return [
            self.settings.model_copy(update={"home": self._home(name)}).run_folder(run_id, k)
            for name in self.names
            for k in attempts
        ]

    def finished(self, spec: RunSpec) -> Run:
        return self.until_final(self.backend.runs.submit(spec).id)

    def until_final(self, run_id: int) -> Run:
        self.wait(lambda: self.backend.runs.get(run_id).state.is_final)
        return self.backend.runs.get(run_id)

    def wait(self, holds: Callable[[], object], seconds: float = 600) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.05)

    def logs(self) -> str:
        return "\n".join(p.read_text()[-3000:] for p in sorted(self._folder.glob("*.log")))

    def tracebacks(self) -> list[str]:
        """What the agents did not expect."""
        logs = "".join(path.read_text() for path in self._folder.glob("*.log"))
        return logs.split("Traceback (most recent call last)")[1:]

    def close(self) -> None:
        for agent in self._agents.values():
            if agent.poll() is None:
                os.killpg(agent.pid, signal.SIGTERM)
        for agent in self._agents.values():
            try:
                agent.wait(120)
            except subprocess.TimeoutExpired:
                os.killpg(agent.pid, signal.SIGKILL)
        self.redis.stop()
        self.backend.close()
        for space in (*self._spaces, self._hub):
            subprocess.run(["ip", "netns", "del", space], capture_output=True)


def may_make_networks() -> bool:
    """Whether this machine lets us."""
    if shutil.which("ip") is None:
        return False
    name = f"sf{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made
