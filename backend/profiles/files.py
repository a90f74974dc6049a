"""A profile from a person's file, whichever of the three formats it is in."""

from pathlib import PurePath

from backend.errors import InvalidInput
from backend.profiles.document import check_profile, read_profile
from backend.profiles.graph_txt import read_graph
from backend.profiles.profile import Profile
from backend.profiles.traces.trace_file import is_trace, read_torch_trace
from backend.profiles.traces.traced_profile import traced_profile
from backend.units import bytes_text

SUFFIXES = ("json", "txt", "gz")
GRAPH = ".txt"
MOST_GRAPH = 4 * 2**20
"""Bytes of a graph.txt: a second of reading. The largest that is published has 80 kB."""


def read_profile_file(
    filename: str, content: bytes | str, microbatch: int | None = None, model: str = ""
) -> Profile:
    """PipeDream's graph.txt where `filename` ends in .txt, else a trace of torch.profiler (also
    gzipped) or our JSON, as the content is.

    A profile in JSON says its model's name. Others are named `model`; without that a graph.txt is
    named after its folder ("vgg16/graph.txt") or itself. `microbatch` is the batch size of a
    graph.txt, which it does not state, or of a trace. Raises `InvalidInput`.
    """
    path = PurePath(filename)
    data = content.encode(errors="replace") if isinstance(content, str) else content
    if path.suffix != GRAPH:
        if is_trace(data):
            return traced_profile(read_torch_trace(model or path.name, data), microbatch)
        return read_profile(data)
    if len(data) > MOST_GRAPH:
        raise InvalidInput(
            f"{filename} is larger than {bytes_text(MOST_GRAPH)}, the most that is read"
        )
    text = data.decode("utf-8", "replace")
    own = path.parent.name if path.stem == "graph" and path.parent.name else path.stem
    return read_graph(text, model or own, microbatch)


def imported_profile(filename: str, data: bytes, microbatch: int | None, model: str) -> Profile:
    """The profile in a file that is to be kept as one of `model`: its samples are known, and never
    taken to be 1. Raises `InvalidInput`."""
    if PurePath(filename).suffix == GRAPH and microbatch is None:
        raise InvalidInput(
            "a graph.txt does not say how many samples its microbatch has",
            "Give the size of the microbatch that it was measured with.",
        )
    found = read_profile_file(filename, data, microbatch, model)
    check_profile(found)
    if microbatch is not None and found.microbatch != microbatch:
        raise InvalidInput(
            f"the profile is of {found.microbatch} samples per microbatch, not {microbatch}",
            "Leave the size out: the file says it.",
        )
    return found
