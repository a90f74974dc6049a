"""Fills the small file system that it is given, and tries to store: run by test_full_disk.py."""

import contextlib
import sys
from pathlib import Path

from backend.bootstrap import connect
from backend.runs.request.spec import ProfileSpec
from backend.settings import Settings
from backend.storage.errors import StorageFull
from backend.storage.schema import upgrade

SOURCE = b"def model():\n    return None\n"


def main(disk: Path) -> None:
    settings = Settings(home=disk / "home")
    upgrade(settings)
    backend = connect(settings)
    kept = backend.definitions.add("kept.py", SOURCE)
    run = backend.runs.submit(ProfileSpec(kept.id))
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    weights = disk / "weights"
    weights.write_bytes(bytes(10_000))
    filler = (disk / "filler").open("wb", buffering=0)
    with contextlib.suppress(OSError):
        while filler.write(bytes(512)):
            pass
    filler.close()
    for store in (
        lambda: backend.definitions.add("late.py", SOURCE + b"#" * 200_000),
        lambda: attempt.artifact("weights", weights),
    ):
        try:
            store()
        except StorageFull as fault:
            print("full:", fault.advice)
    (disk / "filler").unlink()
    assert [each.name for each in backend.definitions.list()] == ["kept"]
    assert backend.definitions.source(kept.id) == SOURCE
    assert backend.runs.list().total == 1
    assert not list(settings.artifacts_folder.iterdir())
    attempt.artifact("weights", weights)
    backend.definitions.add("late.py", SOURCE + b"#" * 200_000)
    print("mended")


main(Path(sys.argv[1]))
