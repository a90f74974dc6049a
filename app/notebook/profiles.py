"""A profile in a notebook."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.exports.layer_rows import LAYER_HEAD, layer_row
from app.formats import count, seconds, size
from app.notebook.tables import heading, paragraphs, table
from backend.profiles.document import write_profile
from backend.profiles.files import read_profile_file
from backend.profiles.profile import Profile

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from app.charts.layer_costs import Measure


@dataclass(frozen=True, eq=False)
class NotebookProfile:
    """What each layer costs (`profile`); `id` of one that a server keeps."""

    profile: Profile
    id: int | None = None

    def costs(self, measure: "Measure" = "Time") -> "go.Figure":
        """The chart of the Profile page: "Time", "Memory" or "Operations" per layer."""
        from app.charts.layer_costs import layer_costs
        from app.notebook.figures import inked

        return inked(layer_costs(self.profile, measure))

    def save(self, path: str | Path) -> None:
        """Write it as JSON, which the pages and `stageflow plan --profile` read."""
        Path(path).write_bytes(write_profile(self.profile))

    def __repr__(self) -> str:
        found = self.profile
        layers = count(len(found.layers), "layer")
        line = f"{layers}, microbatch {found.microbatch}, {seconds(found.compute)} of compute"
        return f"<profile {found.name}: {line}, on {found.device}>"

    def _repr_html_(self) -> str:
        found = self.profile
        line = (
            f"{count(len(found.layers), 'layer')} · microbatch {found.microbatch} · "
            f"{seconds(found.compute)} forward and backward · {size(found.parameter_bytes)} of "
            f"parameters · {found.device}"
        )
        rows = table(LAYER_HEAD, map(layer_row, found.layers))
        return heading(found.name, line) + rows + paragraphs(found.notes)


def read_profile(path: str | Path, microbatch: int | None = None) -> NotebookProfile:
    """A profile from a file: ours (.json), or PipeDream's graph.txt, which does not state its
    microbatch. Raises `InvalidInput`."""
    return NotebookProfile(read_profile_file(str(path), Path(path).read_text(), microbatch))
