"""What an error that ends a rank means to a person."""

import errno
import traceback
from dataclasses import replace

from backend.errors import StageflowError
from backend.runs.events import MAX_NAME, RankError

MAX_MESSAGE, MAX_DETAIL = 4_000, 16_000
"""Characters of an error that are told."""


def failed(rank: int, error: Exception) -> RankError:
    """The error as an event: its kind, what a person reads, and the traceback; what is longer
    than a person reads is cut, and says so."""
    event = _failed(rank, error)
    return replace(
        event,
        kind=event.kind[:MAX_NAME],
        message=_cut(event.message, MAX_MESSAGE),
        advice=_cut(event.advice, MAX_MESSAGE),
        detail=_cut(event.detail, MAX_DETAIL),
    )


def _cut(text: str, most: int) -> str:
    """The beginning and, as long again, the end, where errors have their cause."""
    if len(text) <= most:
        return text
    half = most // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[... {left_out:,} characters are left out ...]\n{text[-half:]}"


def _words(error: BaseException) -> str:
    """What it says, if it can."""
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__


def _failed(rank: int, error: Exception) -> RankError:
    if isinstance(error, StageflowError):
        detail = getattr(error, "detail", "")
        return RankError(rank, type(error).__name__, str(error), error.advice, detail)
    detail = "".join(traceback.format_exception(error))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = f" while writing {error.filename}" if error.filename else ""
        advice = "Free some space where runs are kept (STAGEFLOW_HOME), then run it again."
        return RankError(rank, "DiskFull", f"The disk is full{place}.", advice, detail)
    if is_out_of_memory(error):
        advice = "Use smaller microbatches, or more stages."
        return RankError(rank, "OutOfMemory", f"Rank {rank} ran out of memory.", advice, detail)
    if is_lost_peer(error):
        advice = "Look at the other ranks: one of them ended first."
        return RankError(rank, "PeerLost", f"Rank {rank} lost another rank.", advice, detail)
    return RankError(rank, type(error).__name__, _words(error), detail=detail)


def is_out_of_memory(error: Exception) -> bool:
    """Whether Python, torch or CUDA say that no memory is left."""
    text = _words(error).lower()
    signs = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(sign in text for sign in signs)


def is_lost_peer(error: BaseException) -> bool:
    """Whether gloo says that the other side of a connection went away."""
    signs = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")
    if isinstance(error, RuntimeError) and any(sign in _words(error) for sign in signs):
        return True
    return error.__cause__ is not None and is_lost_peer(error.__cause__)
