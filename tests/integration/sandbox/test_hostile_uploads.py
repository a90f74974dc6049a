"""Uploads that mean harm: refused at the door, or carried where there is nothing to harm.

What takes too much (fork bombs, endless loops, memory, disk) is in test_hunger.py, what a rank
hands over that is not its own in tests/unit/workers/supervisor/reporting/test_announced.py.
"""

import io
import json
import os
import pickle
import socket
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import pytest

from backend.bootstrap import connect
from backend.cluster.document import read_cluster
from backend.definitions.check import check
from backend.errors import StageflowError
from backend.profiles.document import read_profile
from backend.profiles.files import read_profile_file
from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel
from backend.settings import Settings
from backend.storage.schema import upgrade
from tests.integration.sandbox.conftest import Lab
from workers.sandbox.bubblewrap import PROJECT
from workers.sandbox.sandbox import detect

CANARY = "canary-8f3a"
MODEL = b"def model(): ...\n"


class Attack:
    """Makes a file where it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch /tmp/{CANARY}",)


PICKLE = pickle.dumps(Attack())


def archive(entries: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, data in entries.items():
            made.writestr(name, data)
    return file.getvalue()


def bomb(name: str, mebibytes: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        if name != (described := "a/models/model.json"):
            made.writestr(described, b"{}")
        with made.open(name, "w", force_zip64=True) as entry:
            for _ in range(mebibytes):
                entry.write(bytes(1 << 20))
    return file.getvalue()


def locked(data: bytes) -> bytes:
    """Its first entry says that it is encrypted."""
    place = data.index(b"PK\x01\x02") + 8
    return data[:6] + b"\x01\x00" + data[8:place] + b"\x01\x00" + data[place + 2 :]


def header(text: bytes, size: int | None = None) -> bytes:
    return (len(text) if size is None else size).to_bytes(8, "little") + text


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(9 * [f'*{old}'])}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
NESTED = b"[" * 100_000
DESCRIBED = b'{"graph_module": {"graph": {"nodes": []}, "signature": {"input_specs": []}}}'
DOOR: dict[str, Callable[[], object]] = {
    "a pickle by its name": lambda: check("weights.pkl", PICKLE),
    "a pickle of torch": lambda: check("weights.pt", archive({"a/data.pkl": PICKLE})),
    "a pickle called Python": lambda: check("model.py", PICKLE),
    "a pickle called JSON": lambda: check("config.json", PICKLE),
    "a pickle called safetensors": lambda: check("w.safetensors", PICKLE),
    "a pickle called a program": lambda: check("net.pt2", PICKLE),
    "a program that expands": lambda: check("net.pt2", bomb("a/models/model.json", 80)),
    "weights that expand": lambda: check("net.pt2", bomb("a/data/weights/weight_0", 1100)),
    "a program that is locked": lambda: check(
        "net.pt2", locked(archive({"a/models/model.json": DESCRIBED}))
    ),
    "a program that is cut off": lambda: check(
        "net.pt2", archive({"a/models/model.json": DESCRIBED})[:-30]
    ),
    "a program that is no JSON": lambda: check("net.pt2", archive({"a/models/model.json": b"{"})),
    "a program nested without end": lambda: check(
        "net.pt2", archive({"a/models/model.json": NESTED})
    ),
    "a program of another shape": lambda: check("net.pt2", archive({"a/models/model.json": b"3"})),
    "JSON nested without end": lambda: check("config.json", NESTED),
    "JSON with an endless number": lambda: check(
        "config.json", b'{"model_type": ' + b"9" * 9000 + b"}"
    ),
    "a header longer than the file": lambda: check("w.safetensors", header(b"{}", 2**63)),
    "a header nested without end": lambda: check("w.safetensors", header(NESTED)),
    "a header that is no table": lambda: check("w.safetensors", header(b"[1]")),
    "Python nested without end": lambda: check("model.py", b"x = " + b"(" * 9000),
    "Python with a NUL": lambda: check("model.py", MODEL + b"\0"),
    "Python of a megabyte and more": lambda: check("model.py", MODEL + b"#" * (1 << 20)),
    "a name with a NUL": lambda: check("a\0.py", MODEL),
    "a name with a line break": lambda: check("a\n.py", MODEL),
    "a name that turns text around": lambda: check("a\N{RIGHT-TO-LEFT OVERRIDE}yp.py", MODEL),
    "a name too long for a disk": lambda: check("a" * 300 + ".py", MODEL),
    "YAML that expands": lambda: read_cluster(LAUGHS),
    "YAML that makes objects": lambda: read_cluster("!!python/object/apply:os.system [id]"),
    "YAML nested without end": lambda: read_cluster("[" * 5000),
    "a profile nested without end": lambda: read_profile(NESTED),
    "a profile of numbers that are none": lambda: read_profile(
        b'{"format": "stageflow-profile", "version": 1, "profile": {"layers": NaN}}'
    ),
    "a graph in a circle": lambda: read_profile_file(
        "graph.txt",
        "node1 -- Linear() -- forward_compute_time=1, backward_compute_time=1, "
        "activation_size=1, parameter_size=1\n\tnode1 -- node1",
    ),
    "a graph without sense": lambda: read_profile_file("graph.txt", "\0" * 1000),
}


@pytest.mark.parametrize("what", DOOR)
def test_it_is_refused_at_the_door_with_what_to_do(what: str) -> None:
    with pytest.raises(StageflowError) as caught:
        DOOR[what]()
    assert str(caught.value)
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    assert caught.value.advice
    assert not Path(f"/tmp/{CANARY}").exists()


@dataclass(frozen=True)
class Target:
    """What there is to read, to write and to reach outside."""

    home: Path
    port: int
    abstract: str


SYSCALL = "ctypes.CDLL(None, use_errno=True)"
ATTEMPTS = {
    "read the database": "open(HOME + '/stageflow.db', 'rb').read()",
    "read another run": "open(HOME + '/runs/99/attempt-1/work/weights.bin').read()",
    "read another run's artifact": "open(HOME + '/artifacts/canary').read()",
    "read another run's checkpoint": "open(HOME + '/checkpoints/99/1-1/canary').read()",
    "read passwords": "open('/etc/shadow').read()",
    "read a key of the user": "open(KEY).read()",
    "read the agent's memory": "open(f'/proc/{PARENT}/mem', 'rb').read(1)",
    "read the agent's files": "os.listdir(f'/proc/{PARENT}/fd')",
    "read it by a link": "os.symlink(HOME + '/stageflow.db', work / f'link{rank}'); "
    "open(work / f'link{rank}').read()",
    "read it by a hard link": "os.link(HOME + '/stageflow.db', work / f'hard{rank}')",
    "read the kernel's memory": "open('/dev/mem', 'rb').read(1)",
    "read the kernel's log": "os.open('/dev/kmsg', os.O_RDONLY)",
    "read a disk": "os.mknod(work / f'disk{rank}', 0o660 | stat.S_IFBLK, os.makedev(8, 0))",
    "write over its job": "open(work.parent / 'job.json', 'w')",
    "write over the definition": "open(sys.argv[0] and next((work.parent / 'definition')"
    ".iterdir()), 'w')",
    "write beside its folder": "open(work.parent.parent / 'canary', 'w')",
    "write into the home": "open(HOME + '/canary', 'w')",
    "write into Stageflow": "open(CODE + '/workers/canary.py', 'w')",
    "write into the environment": "open(sys.prefix + '/canary.py', 'w')",
    "write into the system": "open('/etc/cron.d/canary', 'w')",
    "write the kernel's settings": "open('/proc/sys/kernel/core_pattern', 'w').write('|/x')",
    "write to the kernel's keys": "open('/proc/sysrq-trigger', 'w').write('h')",
    "reach a server of this machine": "socket.create_connection(('127.0.0.1', PORT), 2)",
    "reach it by another spelling": "socket.create_connection(('0.0.0.0', PORT), 2)",
    "reach an abstract socket": "socket.socket(socket.AF_UNIX).connect(ABSTRACT)",
    "reach Redis": "socket.socket(socket.AF_UNIX).connect(HOME + '/redis.sock')",
    "reach the internet": "socket.create_connection(('192.0.2.1', 80), 2)",
    "reach a cloud's metadata": "socket.create_connection(('169.254.169.254', 80), 2)",
    "ask for a name": "socket.getaddrinfo('example.org', 80)",
    "listen to the network": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "end the agent": "os.kill(PARENT, 9)",
    "trace the agent": f"ok({SYSCALL}.ptrace(16, PARENT, 0, 0))",
    "mount a file system": f"ok({SYSCALL}.mount(b'none', b'/usr', b'tmpfs', 0, None))",
    "leave its root": "os.chroot('/proc')",
    "become root": "os.setuid(0)",
    "set the clock": "time.clock_settime(time.CLOCK_REALTIME, 0)",
    "load a module": f"ok({SYSCALL}.syscall(175, 0, 0, b''))",
    "go before others": "os.nice(-5)",
    "raise its limits": "resource.setrlimit(resource.RLIMIT_NPROC, (1 << 40, 1 << 40))",
    "type into a terminal": "fcntl.ioctl(0, termios.TIOCSTI, b'x')",
}
IMPORTS = (
    "import ctypes, fcntl, os, resource, socket, stat, sys, termios, time\n"
    "def ok(code):\n    if code != 0: raise OSError(ctypes.get_errno(), 'refused')\n"
)


def work(target: Target, key: Path) -> str:
    """A rank that tries everything, and prints what came of each."""
    lines = [
        f"HOME, KEY, CODE = {str(target.home)!r}, {str(key)!r}, {str(PROJECT)!r}",
        f"PORT, ABSTRACT, PARENT = {target.port}, {target.abstract!r}, {os.getpid()}",
        "say(Started(rank))",
        "for path in __import__('glob').glob('/proc/*/environ'):",
        "    try: print('ENVIRONMENT', open(path, 'rb').read())",
        "    except OSError: pass",
    ]
    for name, code in ATTEMPTS.items():
        lines += [
            "try:",
            *(f"    {part}" for part in code.split("; ")),
            f"    print({f'TRIED {name}: HARM'!r})",
            "except (OSError, ValueError) as fault:",
            f"    print({f'TRIED {name}:'!r}, type(fault).__name__)",
        ]
    lines.append("say(Finished(rank))")
    return IMPORTS + "def work(rank, say, work):\n" + indent("\n".join(lines), "    ")


Tried = tuple[str, Target, Path]


@contextmanager
def everything_tried(folder: Path) -> Iterator[Tried]:
    """The log of one run that tries everything, and what it tried it on."""
    settings = Settings(home=folder / "home", node="tester", lease=20, heartbeat=0.5)
    sandbox = detect(settings)
    if sandbox.level is not SandboxLevel.BUBBLEWRAP:
        pytest.skip(sandbox.reason)
    upgrade(settings)
    key = folder / "key"
    for path in (key, *(settings.home / place for place in PLACES)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CANARY)
    name = f"\0stageflow-hostile-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("STAGEFLOW_API_TOKEN", CANARY)
        abstract.bind(name)
        abstract.listen()
        target = Target(settings.home, tcp.getsockname()[1], name)
        lab = Lab(connect(settings), sandbox)
        run = lab.works(work(target, key))
        text = lab.text(run)
        assert run.state is RunState.SUCCEEDED, (run.error, text)
        yield text, target, key
        for listener in (tcp, abstract):
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()
        lab.backend.close()


PLACES = (
    "runs/99/attempt-1/work/weights.bin",
    "artifacts/canary",
    "checkpoints/99/1-1/canary",
)


def harm(tried: Tried) -> list[str]:
    """What two ranks could read, write or reach outside, or did not try."""
    text, target, key = tried
    found = [
        name
        for name in ATTEMPTS
        if f"TRIED {name}: HARM" in text or text.count(f"TRIED {name}:") != 2
    ]
    found += ["a canary was read"] if CANARY in text or "ENVIRONMENT" not in text else []
    for path in (key, *(target.home / place for place in PLACES)):
        found += [] if path.read_text() == CANARY else [f"{path} was changed"]
    for place in (target.home, PROJECT / "workers", target.home / "runs" / "1"):
        found += [f"{path} was made" for path in place.glob("canary*")]
    return found


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    with everything_tried(tmp_path_factory.mktemp("hostile")) as found:
        yield found


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_it_finds_nothing_to_harm(attempt: str, tried: Tried) -> None:
    text, *_ = tried
    assert text.count(f"TRIED {attempt}:") == 2
    assert f"TRIED {attempt}: HARM" not in text


def test_no_canary_was_read_or_touched(tried: Tried) -> None:
    _, target, _ = tried
    assert harm(tried) == []
    assert json.loads(next(target.home.glob("runs/1/*/job.json")).read_bytes())


def test_they_are_more_than_thirty() -> None:
    assert len(DOOR) + len(ATTEMPTS) >= 70
