"""What an error that ends a rank means to a person."""

import errno
import traceback

from backend.errors import StageflowError
from backend.runs.events import RankError


def failed(rank: int, error: Exception) -> RankError:
    """The error as an event: its kind, what a person reads, and the traceback."""
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
    if _is_lost_peer(error):
        advice = "Look at the other ranks: one of them ended first."
        return RankError(rank, "PeerLost", f"Rank {rank} lost another rank.", advice, detail)
    return RankError(rank, type(error).__name__, str(error) or type(error).__name__, detail=detail)


def is_out_of_memory(error: Exception) -> bool:
    """Whether Python, torch or CUDA say that no memory is left."""
    text = str(error).lower()
    signs = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(sign in text for sign in signs)


def _is_lost_peer(error: Exception) -> bool:
    """Whether gloo says that the other side of a connection went away."""
    signs = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)
