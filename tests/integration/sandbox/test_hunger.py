"""What code that takes too much of something ends with: the limit's name and its numbers."""

import os
import re
from pathlib import Path

import psutil
import pytest

from backend.runs.states import RunState
from tests.integration.sandbox.conftest import failure
from workers.sandbox.control_group import PREFIX, ControlGroup
from workers.sandbox.limits import Limits

MIB = 1024**2
BOMB = """
import os, time
def work(rank, say, folder):
    say(Started(rank))
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)
"""
SLEEPERS = """
import subprocess, sys
def work(rank, say, folder):
    say(Started(rank))
    sleepers = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(40)]
    sleepers[0].wait()
"""


def test_a_fork_bomb(lab):
    lab = lab(max_processes=64)
    kind, message = failure(lab.works(BOMB))
    assert kind == "TooManyProcesses"
    assert "the run may have 64 processes and threads" in message


def test_many_processes(either_lab):
    kind, message = failure(either_lab(max_processes=64).works(SLEEPERS))
    assert kind == "TooManyProcesses"
    assert "64" in message


def test_many_threads(lab):
    run = lab(max_processes=64).works("""
    import threading, time
    def work(rank, say, folder):
        say(Started(rank))
        for _ in range(1000):
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    """)
    kind, _ = failure(run)
    assert kind == "TooManyProcesses"


def test_memory_of_one_process(either_lab):
    run = either_lab(max_memory=256 * MIB).works("""
    def work(rank, say, folder):
        say(Started(rank))
        held = []
        while True:
            held.append(bytearray(b"x") * (16 << 20))
    """)
    kind, message = failure(run)
    assert kind == "OutOfMemory"
    assert "the run may use 256 MiB of memory" in message


def test_memory_of_all_ranks_together(either_lab):
    run = either_lab(max_memory=256 * MIB).works("""
    import time
    def work(rank, say, folder):
        say(Started(rank))
        held = bytearray(b"x") * (150 << 20)
        time.sleep(600)
    """)
    kind, message = failure(run)
    assert kind == "OutOfMemory"
    assert message.startswith("the ranks hold")


def test_memory_that_is_shared(lab):
    run = lab(max_memory=256 * MIB).works("""
    import mmap, time
    def work(rank, say, folder):
        say(Started(rank))
        held = mmap.mmap(-1, 200 << 20)
        held.write(bytes(200 << 20))
        time.sleep(600)
    """)
    assert failure(run)[0] == "OutOfMemory"


IN_MEMORY = """
    import os, time
    def work(rank, say, folder):
        say(Started(rank))
        file = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR)
        for _ in range(300):
            os.write(file, bytes(1 << 20))
        time.sleep(600)
"""


def may_group() -> bool:
    group = ControlGroup.of(Limits(60.0, 1 << 30, 64, 1, 1, 1))
    if group is not None:
        group.close()
    return group is not None


@pytest.mark.skipif(not may_group(), reason="no control group can be made here")
def test_files_that_lie_in_memory(either_lab):
    """No process holds them: the control group alone counts them."""
    kind, message = failure(either_lab(max_memory=256 * MIB).works(IN_MEMORY))
    assert kind == "OutOfMemory"
    assert "the run may use 256 MiB of memory" in message
    assert not list(Path("/sys/fs/cgroup").rglob(f"{PREFIX}{os.getpid()}-*"))


def test_one_large_file(either_lab):
    run = either_lab(max_file=8 * MIB).works("""
    def work(rank, say, folder):
        say(Started(rank))
        with open(folder / f"huge{rank}", "wb") as file:
            while True:
                file.write(bytes(1 << 20))
    """)
    kind, message = failure(run)
    assert kind == "FileTooLarge"
    assert "a file of a run may have 8.00 MiB" in message


def test_many_large_files(either_lab):
    run = either_lab(max_disk=32 * MIB).works("""
    import time
    def work(rank, say, folder):
        say(Started(rank))
        for number in range(40):
            (folder / f"{rank}-{number}").write_bytes(bytes(1 << 20))
        time.sleep(600)
    """)
    kind, message = failure(run)
    assert kind == "DiskFull"
    assert "it may keep 32.0 MiB" in message


def test_many_small_files(either_lab):
    run = either_lab(max_files=500).works("""
    import time
    def work(rank, say, folder):
        say(Started(rank))
        (folder / f"deep{rank}" / "er").mkdir(parents=True)
        for number in range(600):
            (folder / f"deep{rank}" / "er" / str(number)).touch()
        time.sleep(600)
    """)
    kind, message = failure(run)
    assert kind == "TooManyFiles"
    assert "it may keep 500" in message


def test_an_endless_loop_while_the_file_is_imported(either_lab):
    run = either_lab(max_seconds=4.0).profiles("""
    while True:
        pass
    def model(): ...
    def example(batch): return torch.rand(batch, 8), torch.rand(batch)
    """)
    kind, message = failure(run)
    assert kind == "OutOfTime"
    assert "it may take 4 s" in message


@pytest.mark.parametrize("expression", ["torch.empty(10**15)", "torch.zeros(2**36)"])
def test_a_gigantic_tensor(lab, expression: str):
    run = lab(max_memory=2048 * MIB).profiles(f"""
    import torch
    def model():
        return {expression}
    def example(batch): return torch.rand(batch, 8), torch.rand(batch)
    """)
    kind, message = failure(run)
    assert kind == "OutOfMemory"
    assert message.startswith("attack.py, line 4: RuntimeError:")
    assert "the run may use 2.00 GiB of memory" in message


WEIGHTS = """
import io, zipfile, torch
def bomb(numbers):
    whole = io.BytesIO()
    torch.save({"weight": torch.zeros(2)}, whole)
    count = b"J" + numbers.to_bytes(4, "little")
    with zipfile.ZipFile(whole) as small, \\
         zipfile.ZipFile("bomb.pt", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as large:
        for entry in small.namelist():
            with large.open(entry, "w") as file:
                if entry.endswith("/data/0"):
                    for _ in range(numbers >> 18):
                        file.write(bytes(1 << 20))
                else:
                    file.write(small.read(entry).replace(b"K\\x02", count))
def model():
    bomb(2**27)
    print("bytes:", __import__("os").path.getsize("bomb.pt"))
    torch.load("bomb.pt", weights_only=True)
def example(batch): return torch.rand(batch, 8), torch.rand(batch)
"""


def test_weights_that_expand(lab):
    """A small file, loaded in the only way that is allowed, that holds 512 MiB."""
    lab = lab(max_memory=512 * MIB)
    run = lab.profiles(WEIGHTS)
    kind, message = failure(run)
    size = int(re.search(r"bytes: (\d+)", lab.text(run))[1])
    assert size < 4 * MIB
    assert kind == "OutOfMemory"
    assert "the run may use 512 MiB" in message


DAEMON = """
import subprocess, sys
def work(rank, say, folder):
    say(Started(rank))
    start = (
        "import subprocess; "
        "subprocess.Popen(['sleep', '{marker}'], start_new_session=True, env={{}})"
    )
    subprocess.run([sys.executable, "-c", start], check=True)
    say(Finished(rank))
"""


def test_a_daemon_left_behind(either_lab, tmp_path: Path):
    marker = f"6{os.getpid()}.{abs(hash(tmp_path)) % 1000}"
    run = either_lab().works(DAEMON.format(marker=marker))
    assert run.state is RunState.SUCCEEDED
    assert not [p for p in psutil.process_iter(["cmdline"]) if marker in (p.info["cmdline"] or [])]


@pytest.mark.parametrize("holes", [False, True])
def test_files_handed_over_count_wherever_they_are_then(either_lab, holes: bool):
    lab = either_lab(max_disk=8 << 20)
    run = lab.works(f"""
        import time

        def work(rank, say, folder):
            say(Started(rank))
            for number in range(100 if rank == 0 else 0):
                with open(folder / f"{{number}}", "wb") as file:
                    file.truncate(1 << 20) if {holes} else file.write(bytes(1 << 20))
                say(Artifact(f"{{number}}", str(folder / f"{{number}}")))
                while (folder / f"{{number}}").exists():
                    time.sleep(0.01)
            time.sleep(60)
    """)
    kind, message = failure(run)
    assert kind == "DiskFull"
    assert "the run has handed over 9.00 MiB; it may keep 8.00 MiB" in message
    assert len(lab.backend.runs.artifacts.list(run.id)) == 8
