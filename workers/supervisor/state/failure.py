"""The errors of ranks that failed, for people. No I/O."""

import signal

from backend.runs.events import RankError
from backend.runs.run import RunError

PEER_KINDS = frozenset({"PeerLost"})
PEER_WORDS = ("connection closed by peer", "connection reset by peer", "broken pipe")
DISK_WORDS = ("no space left on device", "errno 28")
ADVICE: dict[int, str] = {
    signal.SIGKILL: "A person ended it, or the system did because memory ran out: try a smaller "
    "microbatch or more stages, and check the machine's kernel log.",
    signal.SIGTERM: "A person ended it, or whoever ended its agent, on its host or another's: a "
    "service manager, a scheduler, a shutdown.",
}
"""What to do about a rank that a signal ended."""
FREE_SPACE = "Free some space there, or set STAGEFLOW_HOME to a larger disk, and run it again."


def blames_peer(event: RankError) -> bool:
    """Is this only the echo of another rank's death?"""
    text = f"{event.kind} {event.message} {event.detail}".lower()
    return event.kind in PEER_KINDS or any(word in text for word in PEER_WORDS)


def told(event: RankError) -> RunError:
    """A rank's own words; a full disk under its own name whoever met it."""
    text = f"{event.message} {event.detail}".lower()
    if any(word in text for word in DISK_WORDS):
        return RunError("DiskFull", f"rank {event.rank}: {event.message}", FREE_SPACE, event.detail)
    return RunError(event.kind, event.message, event.advice, event.detail)


def killed(rank: int, number: int) -> RunError:
    """The error of a rank that signal `number` ended."""
    advice = ADVICE.get(number, "Native code crashed. Look at the end of the log.")
    return RunError("RankKilled", f"rank {rank} was killed by signal {number}", advice)


def ended(rank: int, code: int) -> RunError:
    """The error of a rank that left without a word."""
    return RunError(
        "RankEnded",
        f"rank {rank} ended with exit code {code} before its work was done",
        "Look at the end of the log; a definition must not call exit().",
    )


def hung(rank: int, seconds: float) -> RunError:
    """The error of a rank that has been silent for `seconds`."""
    return RunError(
        "RankHung",
        f"rank {rank} has not reported for {seconds:.0f} s",
        "Look at the end of the log for a deadlock or a call that never returns.",
    )


def stalled(rank: int, seconds: float) -> RunError:
    """The error of a rank that lives and has finished no action for `seconds`."""
    return RunError(
        "RankHung",
        f"rank {rank} has finished no action for {seconds:.0f} s",
        "Look for a deadlock or a peer that does not send; if an action may take so long, raise "
        "STAGEFLOW_STALL.",
    )
