"""System calls that no rank needs fail at every level; what torch and Python use goes on."""

import platform

import pytest

from backend.runs.states import RunState
from tests.integration.sandbox.conftest import Lab

ATTEMPTS = """
    import ctypes, errno, multiprocessing, os, pathlib, socket, threading, time

    libc = ctypes.CDLL(None, use_errno=True)
    NEWUSER, SIGCHLD = 0x10000000, 17
    NUMBERS = {"clone": 56, "io_uring_setup": 425, "keyctl": 250, "bpf": 321, "clone3": 435}

    def called(name, *arguments):
        ctypes.set_errno(0)
        number = NUMBERS.get(name)
        asked = (getattr(libc, name)(*arguments) if number is None
                 else libc.syscall(number, *arguments))
        if asked == 0 and name == "clone":
            os._exit(0)
        return errno.errorcode.get(ctypes.get_errno(), "done")

    def family(number):
        try:
            with socket.socket(number, socket.SOCK_DGRAM) as s:
                if number == socket.AF_VSOCK:
                    s.connect((1, 1))  # this machine itself
            return "done"
        except OSError as fault:
            return errno.errorcode[fault.errno]

    def attempt(work):
        try:
            work()
            return "done"
        except OSError as fault:
            return errno.errorcode[fault.errno]

    def hard_to_kill():
        adjusted = pathlib.Path("/proc/self/oom_score_adj")
        attempt(lambda: adjusted.write_text("0"))
        for _ in range(600):
            if adjusted.read_text().strip() == "500":
                return "taken back"
            time.sleep(0.1)
        return "done"

    def work(rank, say, folder):
        say(Started(rank))
        print("unshare", called("unshare", NEWUSER))
        print("clone", called("clone", NEWUSER | SIGCHLD, 0, 0, 0, 0))
        print("clone3", called("clone3", 0, 0))
        print("shmget", called("shmget", 0, 4096, 0o1600))
        print("io_uring", called("io_uring_setup", 1, 0))
        print("keyctl", called("keyctl", 0, -3, 1))
        print("bpf", called("bpf", 0, 0, 0))
        print("ptrace", called("ptrace", 0, 0, 0, 0))
        print("memfd", attempt(lambda: os.memfd_create("x")))
        print("vsock", family(socket.AF_VSOCK))
        print("packet", family(socket.AF_PACKET))
        print("bluetooth", family(31))
        print("oom", hard_to_kill())
        for each in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
            print("socket", family(each))
        threads = [threading.Thread(target=print, args=("thread\\n",), kwargs={"end": ""})
                   for _ in range(2)]  # each line at once
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print("pool", pool.map(abs, (-1, -2)))
        with open("/proc/self/status") as file:
            print([line.split() for line in file if line.startswith(("NoNewPrivs", "Seccomp:"))])
        say(Finished(rank))
"""
REFUSED = {
    **dict.fromkeys(("unshare", "clone", "keyctl", "bpf", "ptrace"), "EPERM"),
    **dict.fromkeys(("clone3", "shmget", "io_uring", "memfd"), "ENOSYS"),
    **dict.fromkeys(("vsock", "packet", "bluetooth"), "EAFNOSUPPORT"),
    "oom": "taken back",
}


def not_as_it_must(lab: Lab) -> list[str]:
    """What two ranks could do that they must not, or could not that they must."""
    run = lab.works(ATTEMPTS)
    if (run.state, run.error) != (RunState.SUCCEEDED, None):
        return [str(run.error)]
    lines = lab.text(run).splitlines()
    expected = {f"{name} {code}": 2 for name, code in REFUSED.items()} | {
        "socket done": 8,
        "thread": 4,
        "pool [1, 2]": 2,
        "[['NoNewPrivs:', '1'], ['Seccomp:', '2']]": 2,
    }
    return [line for line, times in expected.items() if lines.count(line) != times]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls are its")
def test_no_rank_makes_namespaces_hidden_memory_or_strange_sockets(either_lab) -> None:
    assert not_as_it_must(either_lab()) == []
