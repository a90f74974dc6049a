"""Files of runs and checkpoints over HTTP: in parts, cut off, replaced meanwhile, damaged, gone."""

import hashlib
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app import download
from app.client import ApiProblem, Client
from app.download import DownloadCutOff, DownloadDamaged
from backend.services.runs.attempt import Attempt
from tests.api.asking import ask
from tests.api.conftest import Served
from tests.app import seed
from tests.app.test_resume import PART, stopped

DATA = os.urandom(3_000_017)
BIG = 200 * 2**20


@pytest.fixture
def attempt(served: Served) -> Attempt:
    """One that goes on, of a run that keeps `DATA` as "model.safetensors"."""
    plan = served.backend.plans.get(served.seeded.plan)
    attempt = seed.running(served.backend, served.seeded.definition, plan)
    keep(attempt, DATA)
    return attempt


def keep(attempt: Attempt, data: bytes) -> None:
    file = Path(os.environ["STAGEFLOW_HOME"]) / "given"
    file.write_bytes(data)
    attempt.artifact("model.safetensors", file)


class Cutting:
    """A way to the server on which every answer ends after so many bytes."""

    def __init__(self, url: str, most: int, then: Callable[[], None] = lambda: None) -> None:
        address = urlsplit(url)
        self._to, self._most, self._then = (address.hostname, address.port), most, then
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, socket.create_connection(self._to) as server:
                request = client.recv(65536)
                self.asked.append(request.decode())
                server.sendall(request)
                left = self._most
                while left and (data := server.recv(min(left, 65536))):
                    client.sendall(data)
                    left -= len(data)
            self._then()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def cutting(served: Served) -> Iterator[Callable[..., Cutting]]:
    made: list[Cutting] = []

    def make(most: int, then: Callable[[], None] = lambda: None) -> Cutting:
        made.append(Cutting(served.url, most, then))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_part_is_handed_out_and_its_tag_is_the_hash(served: Served, attempt: Attempt) -> None:
    (kept,) = served.client.artifacts(attempt.run.id)
    assert kept["sha256"] == hashlib.sha256(DATA).hexdigest()
    path = f"/api/v1/runs/{attempt.run.id}/artifacts/model.safetensors"
    whole = ask(served.url, path)
    assert (whole.status, whole.body) == (200, DATA)
    tag = whole.headers["etag"]
    assert tag == f'"{kept["sha256"]}"'
    part = ask(served.url, path, headers={"Range": "bytes=1000-1999", "If-Range": tag})
    assert (part.status, part.body) == (206, DATA[1000:2000])
    assert part.headers["content-range"] == f"bytes 1000-1999/{len(DATA)}"
    other = ask(served.url, path, headers={"Range": "bytes=1000-1999", "If-Range": '"old"'})
    assert (other.status, other.body) == (200, DATA)
    assert ask(served.url, path, headers={"Range": f"bytes={len(DATA)}-"}).status == 416


def test_a_model_comes_as_a_folder(served: Served, attempt: Attempt, tmp_path: Path) -> None:
    config = tmp_path / "given"
    config.write_text("{}")
    attempt.artifact("config.json", config)
    served.client.save_model(attempt.run.id, tmp_path / "trained")
    found = {file.name: file.read_bytes() for file in (tmp_path / "trained").iterdir()}
    assert found == {"model.safetensors": DATA, "config.json": b"{}"}


def test_what_is_cut_off_goes_on_where_it_ended(
    attempt: Attempt, cutting: Callable[..., Cutting], tmp_path: Path
) -> None:
    way = cutting(900_000)
    Client(way.url).save_artifact(attempt.run.id, "model.safetensors", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == DATA
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    starts = [int(n) for text in way.asked for n in re.findall(r"Range: bytes=(\d+)-", text)]
    assert len(way.asked) == len(starts) + 1 == 4
    assert starts == sorted(set(starts))
    assert starts[0] > 890_000, "what had come was thrown away"


def test_a_later_call_goes_on_too(served: Served, attempt: Attempt, tmp_path: Path) -> None:
    tag = hashlib.sha256(DATA).hexdigest()
    (tmp_path / f"model.{tag}.part").write_bytes(DATA[:1_000_000])
    served.client.save_artifact(attempt.run.id, "model.safetensors", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == DATA


def test_a_call_that_ended_before_its_last_step_needs_nothing_more(
    served: Served, attempt: Attempt, tmp_path: Path
) -> None:
    tag = hashlib.sha256(DATA).hexdigest()
    (tmp_path / f"model.{tag}.part").write_bytes(DATA)
    served.client.save_artifact(attempt.run.id, "model.safetensors", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == DATA
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_a_file_that_is_replaced_meanwhile_comes_from_its_beginning(
    attempt: Attempt, cutting: Callable[..., Cutting], tmp_path: Path
) -> None:
    """Of the same size: nothing but its hash tells that it is another one."""
    new = os.urandom(len(DATA))
    way = cutting(1_600_000, lambda: keep(attempt, new))
    Client(way.url).save_artifact(attempt.run.id, "model.safetensors", tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == new
    assert len(way.asked) == 3


def test_connections_that_bring_nothing_are_given_up(
    attempt: Attempt,
    cutting: Callable[..., Cutting],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(download, "PAUSE", 0)
    way = cutting(20)
    with pytest.raises(DownloadCutOff, match="cut off 5 times"):
        Client(way.url).save_artifact(attempt.run.id, "model.safetensors", tmp_path / "model")
    assert len(way.asked) == 5
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_not_left_as_whole(
    served: Served, attempt: Attempt, tmp_path: Path
) -> None:
    kept = served.backend.runs.artifacts.path(attempt.run.id, "model.safetensors")
    kept.write_bytes(DATA[:-1] + bytes([DATA[-1] ^ 1]))
    with pytest.raises(DownloadDamaged):
        served.client.save_artifact(attempt.run.id, "model.safetensors", tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_gone_is_told_of(served: Served, attempt: Attempt, tmp_path: Path) -> None:
    served.backend.runs.artifacts.path(attempt.run.id, "model.safetensors").unlink()
    with pytest.raises(ApiProblem, match=r"model\.safetensors is not on this machine") as caught:
        served.client.save_artifact(attempt.run.id, "model.safetensors", tmp_path / "model")
    assert caught.value.status == 404


def test_a_checkpoint_s_files(served: Served, tmp_path: Path) -> None:
    run_id = stopped(served.backend, served.seeded)
    (kept,) = served.client.checkpoints(run_id)
    assert [kept] == served.backend.runs.checkpoints.list(run_id)
    served.client.save_checkpoint_file(kept.id, PART, tmp_path / PART)
    assert (tmp_path / PART).read_bytes() == b"12345"
    part = ask(served.url, f"/api/v1/checkpoints/{kept.id}/{PART}", headers={"Range": "bytes=3-"})
    assert (part.status, part.body) == (206, b"45")
    for name in ("stage-1.safetensors", "../1-30/stage-0.safetensors", ".."):
        with pytest.raises(ApiProblem) as caught:
            served.client.save_checkpoint_file(kept.id, name, tmp_path / "none")
        assert caught.value.status == 404
    (kept.folder / PART).unlink()
    with pytest.raises(ApiProblem, match="is not on this machine"):
        served.client.save_checkpoint_file(kept.id, PART, tmp_path / "none")


def test_neither_side_holds_the_file(served: Served, attempt: Attempt, tmp_path: Path) -> None:
    """Server and client are both in this process."""
    file = tmp_path / "given"
    with file.open("wb") as target:
        target.truncate(BIG)
    attempt.artifact("big", file)
    Path("/proc/self/clear_refs").write_text("5")  # the most so far is what there is now
    before = resident("VmRSS")
    served.client.save_artifact(attempt.run.id, "big", tmp_path / "big")
    assert (tmp_path / "big").stat().st_size == BIG
    assert resident("VmHWM") - before < BIG / 5


def resident(which: str) -> int:
    found = re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024
