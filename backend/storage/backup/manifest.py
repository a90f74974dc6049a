"""What is in a backup: its first page, and the only names that are read from it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from backend.codec import from_json, to_json
from backend.errors import InvalidInput, StageflowError
from backend.storage.backup.rows import Sum

NAME = "manifest.json"
FORMAT = 1
LARGEST = 64 * 1024**2
"""Bytes of the largest manifest that is read: some 300,000 files."""
PLACES = re.compile(
    r"artifacts/[0-9a-f]{64}|checkpoints/[0-9]{1,12}/[0-9]{1,9}-[0-9]{1,12}/[A-Za-z0-9_][\w.-]{0,127}",
    re.ASCII,
)
"""Files lie here, relative to the home, and nowhere else."""


class BackupDamaged(StageflowError):
    """A file that is no backup of Stageflow's, or not the whole one."""

    advice = "Use another backup file; nothing was changed."


@dataclass(frozen=True, slots=True)
class KeptTable:
    """The columns in the order of each line, and what the rows add up to."""

    columns: tuple[str, ...]
    sum: Sum


@dataclass(frozen=True, slots=True)
class KeptFile:
    """`size` in bytes, `sha256` in hex."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`revision` of the schema; `tables` in the order in which they are filled; `numbers` as
    `next_numbers` gave them; `missing` are files that were gone or damaged already."""

    format: int
    version: str
    revision: str
    created_at: str
    tables: Mapping[str, KeptTable]
    numbers: Mapping[str, int]
    files: Mapping[str, KeptFile]
    missing: tuple[str, ...]


def write_manifest(manifest: Manifest) -> bytes:
    """As JSON."""
    return to_json(Manifest, manifest)


def read_manifest(data: bytes) -> Manifest:
    """Raises `BackupDamaged` naming the first faulty field, format or name of a file."""
    try:
        manifest: Manifest = from_json(Manifest, data)
    except InvalidInput as fault:
        raise BackupDamaged(f"{NAME}: {fault}") from None
    if manifest.format != FORMAT:
        raise BackupDamaged(
            f"the backup has format {manifest.format}, this Stageflow reads {FORMAT}",
            "It was made by a newer Stageflow: install that one.",
        )
    for name, file in manifest.files.items():
        if not PLACES.fullmatch(name):
            raise BackupDamaged(f"{name[:100]!r} is not a path of Stageflow's files")
        if file.size < 0:
            raise BackupDamaged(f"{name}: {file.size} bytes")
    return manifest
