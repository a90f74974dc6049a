"""What code in the sandbox cannot read, write, reach or kill."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from backend.runs.states import RunState
from tests.integration.sandbox.conftest import failure
from workers.sandbox.bubblewrap import PROJECT, SCRATCH

SLEEP = "import time; print(flush=True); time.sleep(600)"


@pytest.fixture
def neighbour() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of the agent's user, with a password in its environment."""
    environment = {"REDIS_PASSWORD": "hunter2", "PATH": os.defpath}
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEP], env=environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_no_environment_but_its_own_can_be_read(lab, neighbour, monkeypatch):
    lab = lab()
    monkeypatch.setenv("STAGEFLOW_DATABASE_URL", "postgresql://user:hunter2@nowhere/x")
    run = lab.works("""
    from glob import glob
    def work(rank, say, folder):
        say(Started(rank))
        for file in glob("/proc/*/environ"):
            try:
                print(file, open(file, "rb").read())
            except OSError as error:
                print(file, type(error).__name__)
        say(Finished(rank))
    """)
    text = lab.text(run)
    assert run.state is RunState.SUCCEEDED
    assert "WORLD_SIZE" in text
    assert "hunter2" not in text
    assert "STAGEFLOW" not in text
    assert f"/proc/{os.getpid()}/" not in text
    assert f"/proc/{neighbour.pid}/" not in text


def test_the_state_directory_and_other_runs_cannot_be_read(lab):
    lab = lab()
    other = lab.settings.run_folder(99, 1) / "work"
    other.mkdir(parents=True)
    (other / "weights.bin").write_text("another run's")
    run = lab.works(f"""
    import os
    def work(rank, say, folder):
        say(Started(rank))
        for path in ({str(lab.settings.sqlite_file)!r}, {str(other / "weights.bin")!r},
                     "/etc/shadow", {os.path.expanduser("~/.bashrc")!r}):
            try:
                print(open(path, "rb").read())
            except FileNotFoundError:
                print("not there:", path)
        print("seen:", sorted(os.listdir({str(lab.settings.home)!r})),
              sorted(os.listdir(folder.parent)), os.listdir(folder.parents[2]))
        say(Finished(rank))
    """)
    text = lab.text(run)
    assert run.state is RunState.SUCCEEDED
    assert text.count("not there:") == 8
    assert "seen: ['runs'] ['definition', 'job.json', 'work'] ['1']" in text


def test_only_its_own_folder_and_small_temporary_ones_can_be_written(lab):
    lab = lab()
    run = lab.works(f"""
    import os
    def work(rank, say, folder):
        say(Started(rank))
        for place in ("/", "/usr", "/etc", "/dev", "/proc/sys/kernel", "/root", folder.parent,
                      folder.parent / "definition", {str(PROJECT / "backend")!r},
                      {str(lab.settings.home)!r}, {sys.prefix!r}):
            try:
                open(f"{{place}}/mine{{rank}}", "w")
                print("WRITTEN", place)
            except OSError:
                pass
        for path in (folder.parent / "job.json", "/etc/passwd", os.__file__):
            try:
                open(path, "a")
                print("WRITTEN", path)
            except OSError:
                pass
        for place in ("/tmp", "/dev/shm"):
            open(f"{{place}}/mine{{rank}}", "w").write("fine")
            room = os.statvfs(place)
            print("room:", room.f_blocks * room.f_frsize)
        (folder / f"mine{{rank}}").write_text("fine")
        say(Finished(rank))
    """)
    text = lab.text(run)
    assert run.state is RunState.SUCCEEDED
    assert "WRITTEN" not in text
    assert text.count(f"room: {SCRATCH}") == 4


def test_no_network_but_that_between_the_ranks(lab):
    lab = lab()
    name = f"\0stageflow-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(name)
        abstract.listen()
        run = lab.profiles(f"""
        import socket, torch
        try:
            socket.socket(socket.AF_UNIX).connect({name!r})
        except OSError as error:
            print("abstract:", error)
        try:
            socket.create_connection(("192.0.2.1", 80), timeout=5)
        except OSError as error:
            print("outside:", error)
        def model():
            socket.create_connection(("127.0.0.1", {tcp.getsockname()[1]}), timeout=5)
        def example(batch): return torch.rand(batch, 8), torch.rand(batch)
        """)
        kind, message = failure(run)
        assert kind == "DefinitionFailed"
        assert message.startswith("attack.py, line 12: ConnectionRefusedError")
        assert "abstract: [Errno 111] Connection refused" in lab.text(run)
        assert "outside: [Errno 101] Network is unreachable" in lab.text(run)
        for listener in (tcp, abstract):
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()


def test_no_process_outside_can_be_killed(lab, neighbour):
    lab = lab()
    run = lab.works(f"""
    import os
    def work(rank, say, folder):
        for pid in ({os.getpid()}, {os.getppid()}, {neighbour.pid}):
            try:
                os.kill(pid, 9)
                print("KILLED")
            except ProcessLookupError:
                print("no such process")
        say(Started(rank))
        os.kill(-1, 9)
        os.kill(os.getpid(), 9)
    """)
    kind, message = failure(run)
    assert kind == "RankKilled"
    assert message.endswith("was killed by signal 9")
    assert "KILLED" not in lab.text(run)
    assert neighbour.poll() is None


def test_a_definition_has_no_power_over_where_its_file_lies(either_lab):
    lab = either_lab()
    run = lab.works(
        """
    def work(rank, say, folder):
        say(Started(rank)); print("file:", __import__("sys").argv[1]); say(Finished(rank))
    """,
        filename="../../../../evil.py",
    )
    folder = lab.settings.run_folder(run.id, 1)
    assert run.state is RunState.SUCCEEDED
    assert [file.name for file in (folder / "definition").iterdir()] == ["evil.py"]
    assert not list(lab.settings.home.parent.rglob("evil.py"))[1:]
