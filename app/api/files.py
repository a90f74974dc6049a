"""Answers that are files: made at once, or handed on from the disk in pieces."""

from pathlib import Path
from typing import Any

from fastapi import Response
from fastapi.responses import FileResponse

from app.api.caller import Caller
from backend.errors import NotFound

OCTETS = "application/octet-stream"


def file_of(*media: str) -> dict[str, Any]:
    """A decorator's options for an operation whose answer is a file of one of these media types."""
    return {"response_class": Response, "responses": {200: {"content": {m: {} for m in media}}}}


def ranged_file_of(*media: str) -> dict[str, Any]:
    """The same, where a part of the file may be asked for, as `kept_file` answers."""
    options = file_of(*media)
    part = {"description": "A part of the file", "content": {m: {} for m in media}}
    beyond = {"description": "The file has no such part"}
    return options | {"responses": {**options["responses"], 206: part, 416: beyond}}


def artifact_file(caller: Caller, run_id: int, name: str) -> FileResponse:
    """A file that was kept with a run. Raises `NotFound`."""
    kept = caller.runs(run_id).artifacts.get(run_id, name)
    return kept_file(kept.path, Path(name).name, kept.sha256)  # as the index of shards names it


def checkpoint_file(caller: Caller, checkpoint_id: int, name: str) -> FileResponse:
    """A file of a checkpoint of a run that the caller sees. Raises `NotFound`."""
    checkpoint = caller.services().runs.checkpoints.get(checkpoint_id)
    caller.runs(checkpoint.run_id)
    for file in checkpoint.files:
        if file.name == name:
            saved_as = f"run-{checkpoint.run_id}-update-{checkpoint.mark.step}-{name}"
            return kept_file(checkpoint.folder / name, saved_as, file.sha256)
    raise NotFound(f"checkpoint {checkpoint_id} has no file {name!r}")


def kept_file(path: Path, saved_as: str, sha256: str) -> FileResponse:
    """The file, whole or the ranges that are asked for, never all of it in memory. Its hash is its
    ETag, so that a download goes on (`If-Range`) with the same bytes or from the beginning."""
    if not path.is_file():
        raise NotFound(
            f"{saved_as} is not on this machine", "It is on the node of the run's rank 0."
        )
    headers = {"ETag": f'"{sha256}"', "X-Content-Type-Options": "nosniff"}
    return FileResponse(path, headers=headers, media_type=OCTETS, filename=saved_as)


def download(content: bytes, name: str, media: str = OCTETS) -> Response:
    """`content`, which browsers keep as a file and never show."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    headers = {
        "Content-Disposition": f'attachment; filename="{safe}"',
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, media_type=media, headers=headers)
