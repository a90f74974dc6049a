"""A backup holds everything of one moment, and comes back into any database, or not at all."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4
from zipfile import ZipFile

import pytest
from alembic import command
from sqlalchemy import create_engine, text

from backend.bootstrap import connect
from backend.errors import InvalidInput, NotFound, StageflowError
from backend.people.rights import Role
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.history.labels import Change
from backend.settings import Settings
from backend.storage.backup.archive import back_up
from backend.storage.backup.layout import Occupied, snapshot
from backend.storage.backup.manifest import BackupDamaged
from backend.storage.backup.moving import move
from backend.storage.backup.restoring import restore
from backend.storage.backup.rows import Sum, rows_of, tables
from backend.storage.database import Database, open_engine
from backend.storage.errors import SchemaOutdated
from backend.storage.revision import current
from backend.storage.schema import configuration, upgrade
from backend.storage.soundness import digest, violations
from tests.app import seed
from tests.postgres import Postgres

STAGE = "stage-0-lane-0.safetensors"


@pytest.fixture
def full(settings: Settings) -> Settings:
    """Runs in every state, people, an artifact and a checkpoint; the newest run was deleted."""
    fill(settings)
    return settings


def fill(settings: Settings) -> None:
    settings.home.mkdir(parents=True, exist_ok=True)
    backend = connect(settings)
    definition = backend.definitions.add_zoo("vgg_digits")
    _, profile = seed.profile_run(backend, definition.id)
    plan = seed.plan_for(backend, profile)
    seed.succeeded(backend, definition.id, plan)
    failed = seed.failed(backend, definition.id, plan)
    attempt = seed.claim(backend, seed.submit(backend, definition.id, plan))
    folder = attempt.checkpoint_folder(3)
    folder.mkdir(parents=True)
    (folder / STAGE).write_bytes(b"weights" * 1000)
    file = CheckpointFile(STAGE, 7000, str(digest(folder / STAGE)))
    attempt.checkpoint(Mark(0, 12, 3), [file], 3)
    gone = seed.submit(backend, definition.id, plan, "gone")
    backend.runs.cancel(gone.id)
    backend.runs.delete(gone.id)
    backend.labels.change([failed], Change(note="n\N{LATIN SMALL LETTER A WITH DIAERESIS}h '; --"))
    backend.team.add("Vera", Role.VIEWER)
    backend.close()


def held(settings: Settings) -> dict[str, Sum]:
    """What every table adds up to."""
    with snapshot(settings) as connection:
        return {t.name: Sum().plus(rows_of(connection, t)) for t in tables(connection)}


def elsewhere(settings: Settings, tmp_path: Path) -> Settings:
    """An empty home, with SQLite."""
    return settings.model_copy(update={"home": tmp_path / "other", "database_url": ""})


def tampered(source: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """The same archive with one entry changed."""
    other = source.with_name("tampered.zip")
    with ZipFile(source) as old, ZipFile(other, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            new.writestr(entry, change(data) if entry.filename == name else data)
    return other


def test_a_backup_comes_back_whole_while_runs_go_on(full: Settings, tmp_path: Path):
    file = tmp_path / "monday.zip"
    manifest = back_up(full, file, "1.2.3")
    assert file.stat().st_mode & 0o777 == 0o600
    assert manifest.missing == ()
    other = elsewhere(full, tmp_path)
    restore(other, file)
    assert held(other) == held(full)
    for folder in ("artifacts", "checkpoints"):
        there, here = (sorted((s.home / folder).rglob("*")) for s in (other, full))
        assert [p.relative_to(other.home) for p in there] == [
            p.relative_to(full.home) for p in here
        ]
    backend = connect(other)
    assert violations(backend.database, other.model_copy(update={"lease": 3600.0})) == []
    newest = max(run.id for run in connect(full).runs.list().runs)
    seventh = backend.runs.retry(newest - 1)
    assert seventh.id == newest + 2  # the number of the deleted run is never given again
    backend.close()


def test_what_hosts_share_is_in_it_and_comes_back_into_a_shared_folder(
    settings: Settings, tmp_path: Path
):
    apart = settings.model_copy(update={"shared": str(tmp_path / "share")})
    fill(apart)
    manifest = back_up(apart, tmp_path / "monday.zip", "1.2.3")
    assert manifest.missing == ()
    assert {name.partition("/")[0] for name in manifest.files} == {"artifacts", "checkpoints"}
    share = tmp_path / "other share"
    other = elsewhere(apart, tmp_path).model_copy(update={"shared": str(share)})
    restore(other, tmp_path / "monday.zip")
    assert all((share / name).stat().st_size == f.size for name, f in manifest.files.items())
    for place in (apart, other):
        assert not {"artifacts", "checkpoints"} & {path.name for path in place.home.iterdir()}
    assert not [path for path in share.iterdir() if path.name.startswith(".")]


@pytest.mark.postgres
def test_a_move_takes_every_row_and_leaves_the_old_database_alone(
    settings: Settings, home: Path, server: Postgres, tmp_path: Path
):
    """From the one kind of database to the other."""
    fill(settings)
    before = held(settings)
    to = url_of_the_other(settings, server, tmp_path)
    moved = move(settings, to)
    there = settings.model_copy(update={"database_url": to})
    assert held(settings) == before == dict(moved) == held(there)
    backend = connect(there)
    runs = backend.runs.list().runs
    again = backend.runs.retry(next(run.id for run in runs if run.state.is_final))
    assert again.id == max(run.id for run in runs) + 2
    with pytest.raises(Occupied, match="is not empty"):
        move(settings, to)
    backend.nodes.beat("here")
    backend.close()
    with pytest.raises(Occupied, match="the agent here works with it"):
        move(settings, to, replace=True)
    old = Settings(home=settings.home, database_url=to, lease=1e-6)
    assert move(settings.model_copy(update={"lease": 1e-6}), to, replace=True) == before
    assert held(old) == before


def url_of_the_other(settings: Settings, server: Postgres, tmp_path: Path) -> str:
    if settings.database_url:
        return f"sqlite:///{tmp_path}/moved.db"
    name = f"t{uuid4().hex}"
    engine = create_engine(server.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.database(name)


def test_a_fault_in_the_middle_leaves_nothing(full: Settings, tmp_path: Path):
    file = tmp_path / "monday.zip"
    back_up(full, file, "1")
    before = held(full)
    bad = tampered(file, "tables/runs.jsonl", lambda data: data[: len(data) // 2])
    with pytest.raises(BackupDamaged, match="runs"):
        restore(full, bad, replace=True)
    assert held(full) == before
    with pytest.raises(Occupied, match="is not empty"):
        restore(full, file)
    seed_more(full)
    assert held(full) != before
    restore(full, file, replace=True)
    assert held(full) == before
    assert not [path for path in full.home.iterdir() if path.name.startswith(".")]


def seed_more(settings: Settings) -> None:
    backend = connect(settings)
    backend.definitions.add("more.py", b"def model(): ...\n")
    backend.close()


def on_manifest(change: Callable[[dict], object]) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        page = json.loads(data)
        change(page)
        return json.dumps(page).encode()

    return changed


def misplaced(name: str) -> Callable[[bytes], bytes]:
    def change(page: dict) -> None:
        page["files"][name] = {"size": 3, "sha256": "0" * 64}

    return on_manifest(change)


RUNS = "tables/runs.jsonl"
PAGE = "manifest.json"
DAMAGED = {
    "a path upwards": (PAGE, misplaced("../../canary")),
    "a path upwards behind a right one": (PAGE, misplaced("checkpoints/1/1-2/../../../../canary")),
    "an absolute path": (PAGE, misplaced("/tmp/canary")),
    "a path to the database": (PAGE, misplaced("stageflow.db")),
    "a hidden file": (PAGE, misplaced("checkpoints/1/1-2/.ssh")),
    "a name with a line break": (PAGE, misplaced("artifacts/" + "0" * 64 + "\n")),
    "a file that is not there": (PAGE, misplaced("artifacts/" + "0" * 64)),
    "more bytes than there is room": (
        PAGE,
        on_manifest(lambda p: [f.update(size=2**60) for f in p["files"].values()]),
    ),
    "another hash": (PAGE, on_manifest(lambda p: [f.update(size=1) for f in p["files"].values()])),
    "no JSON": (PAGE, lambda data: data[:-9]),
    "JSON of another kind": (PAGE, lambda data: b"[1, 2]"),
    "a newer format": (PAGE, on_manifest(lambda p: p.update(format=2))),
    "a newer revision": (PAGE, on_manifest(lambda p: p.update(revision="9999"))),
    "a table too few": (PAGE, on_manifest(lambda p: p["tables"].pop("runs"))),
    "another column": (PAGE, on_manifest(lambda p: p["tables"]["runs"]["columns"].pop())),
    "a row less": (RUNS, lambda data: data.partition(b"\n")[2]),
    "a changed row": (RUNS, lambda data: data.replace(b"broken loss", b"broken boss")),
    "a row of another length": (RUNS, lambda data: b"[1]\n" + data),
    "a value that fits not": (RUNS, lambda data: data.replace(b'"2', b'"x', 1)),
    "nested without an end": (RUNS, lambda data: b"[" * 100_000 + data),
    "half of a character": (RUNS, lambda data: data.replace(b"broken loss", b"\\ud800")),
    "no text": (RUNS, lambda data: b"\xff\xfe" + data),
}


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("backup")
    with seed.settings(folder / "home"):
        settings = Settings()
        upgrade(settings)
        fill(settings)
        back_up(settings, folder / "monday.zip", "1")
    return folder / "monday.zip"


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_backup_is_refused_and_changes_nothing(how: str, backed_up: Path, home: Path):
    other = Settings(home=home)
    name, change = DAMAGED[how]
    before = set(home.parent.rglob("*"))
    with pytest.raises(StageflowError) as caught:
        restore(other, tampered(backed_up, name, change))
    assert caught.value.advice
    left = set(home.parent.rglob("*")) - before - {home}
    assert {path.name.removesuffix("-wal").removesuffix("-shm") for path in left} <= {
        "stageflow.db"
    }
    assert current(other)[0] is None


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive", b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_archive_is_said_to_be_none(content: bytes, home: Path, tmp_path: Path):
    (tmp_path / "odd.zip").write_bytes(content)
    with pytest.raises(BackupDamaged, match=r"odd\.zip"):
        restore(Settings(home=home), tmp_path / "odd.zip")


def test_what_cannot_be_done_is_said_before_it_is_begun(full: Settings, tmp_path: Path):
    (tmp_path / "there.zip").write_bytes(b"mine")
    with pytest.raises(InvalidInput, match="there already"):
        back_up(full, tmp_path / "there.zip", "1")
    assert (tmp_path / "there.zip").read_bytes() == b"mine"
    with pytest.raises(NotFound, match=r"nowhere\.zip"):
        restore(full, tmp_path / "nowhere.zip")
    with pytest.raises(InvalidInput, match="to where it is"):
        move(full, full.sql_url)


def test_where_nothing_is_there_is_nothing_to_keep(blank: Settings, tmp_path: Path):
    with pytest.raises(SchemaOutdated, match="no tables yet"):
        back_up(blank, tmp_path / "nothing.zip", "1")
    assert list(tmp_path.glob("*.zip*")) == []
    assert restore_of_a_new_one(blank, tmp_path) == ()


def restore_of_a_new_one(settings: Settings, tmp_path: Path) -> tuple[str, ...]:
    """A database that was just laid out is as empty as none."""
    upgrade(settings)
    back_up(settings, tmp_path / "new.zip", "1")
    return restore(settings, tmp_path / "new.zip").missing


def test_files_that_are_gone_are_named_and_the_rest_is_kept(full: Settings, tmp_path: Path):
    (artifact,) = (full.home / "artifacts").iterdir()
    artifact.unlink()
    manifest = back_up(full, tmp_path / "monday.zip", "1")
    assert manifest.missing == (f"artifacts/{artifact.name}",)
    assert len(manifest.files) == 1
    restore(elsewhere(full, tmp_path), tmp_path / "monday.zip")


def test_a_backup_of_an_old_schema_is_brought_to_todays(blank: Settings, tmp_path: Path):
    engine = open_engine(blank, foreign_keys=False)
    with engine.begin() as connection:
        command.upgrade(configuration(connection), "0004")
        given = text("INSERT INTO contents (digest, data) VALUES ('ab', :data)")
        connection.execute(given, {"data": b"bytes"})
    back_up(blank, tmp_path / "old.zip", "0")
    other = elsewhere(blank, tmp_path)
    assert restore(other, tmp_path / "old.zip").revision == "0004"
    now, head = current(other)
    assert now == head
    with Database(open_engine(other)).read() as session:
        assert session.scalar(text("SELECT data FROM contents")) == b"bytes"
    engine.dispose()
