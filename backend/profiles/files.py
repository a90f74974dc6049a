"""A profile from a person's file, whichever of the two formats it is in."""

from pathlib import PurePath

from backend.profiles.document import read_profile
from backend.profiles.graph_txt import read_graph
from backend.profiles.profile import Profile


def read_profile_file(filename: str, text: str, microbatch: int | None = None) -> Profile:
    """PipeDream's graph.txt where `filename` ends in .txt, our JSON otherwise.

    A graph.txt is named after its folder ("vgg16/graph.txt") or itself; `microbatch` is its
    batch size, which it does not state. Raises `InvalidInput`.
    """
    path = PurePath(filename)
    if path.suffix != ".txt":
        return read_profile(text)
    name = path.parent.name if path.stem == "graph" and path.parent.name else path.stem
    return read_graph(text, name, microbatch)
