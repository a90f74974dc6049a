"""Answers that are files."""

from typing import Any

from fastapi import Response

OCTETS = "application/octet-stream"


def file_of(*media: str) -> dict[str, Any]:
    """A decorator's options for an operation whose answer is a file of one of these media types."""
    return {"response_class": Response, "responses": {200: {"content": {m: {} for m in media}}}}


def download(content: bytes, name: str, media: str = OCTETS) -> Response:
    """`content`, which browsers keep as a file and never show."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)
    headers = {
        "Content-Disposition": f'attachment; filename="{safe}"',
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, media_type=media, headers=headers)
