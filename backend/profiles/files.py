"""A profile from a person's file, whichever of the three formats it is in."""

from pathlib import PurePath

from backend.profiles.document import read_profile
from backend.profiles.graph_txt import read_graph
from backend.profiles.profile import Profile
from backend.profiles.traces.trace_file import is_trace, read_torch_trace
from backend.profiles.traces.traced_profile import traced_profile


def read_profile_file(
    filename: str, content: bytes | str, microbatch: int | None = None
) -> Profile:
    """PipeDream's graph.txt where `filename` ends in .txt, else a trace of torch.profiler (also
    gzipped) or our JSON, as the content is.

    A graph.txt is named after its folder ("vgg16/graph.txt") or itself; `microbatch` is the
    batch size of a graph.txt, which it does not state, or of a trace. Raises `InvalidInput`.
    """
    path = PurePath(filename)
    data = content.encode(errors="replace") if isinstance(content, str) else content
    if path.suffix != ".txt":
        if is_trace(data):
            return traced_profile(read_torch_trace(path.name, data), microbatch)
        return read_profile(data)
    text = data.decode("utf-8", "replace")
    name = path.parent.name if path.stem == "graph" and path.parent.name else path.stem
    return read_graph(text, name, microbatch)
