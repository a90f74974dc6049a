"""The files that a run left behind."""

from collections.abc import Callable, Sequence

import streamlit as st

from app import services
from app.formats import plain, size
from backend.runs.history.records import StoredArtifact


def artifact_list(run_id: int, artifacts: Sequence[StoredArtifact]) -> None:
    """Name, size, digest and a download each; the file is read on the click."""
    for artifact in artifacts:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"{plain(artifact.name)} &ensp;:gray[:small[{size(artifact.size)} · "
                f"sha256 {artifact.sha256[:10]}]]",
                width="stretch",
            )
            st.download_button(
                "Download",
                data=_reader(run_id, artifact.name),
                file_name=artifact.path.name,
                key=f"artifact-{run_id}-{artifact.name}",
                icon=":material/download:",
                on_click="ignore",
            )


def _reader(run_id: int, name: str) -> Callable[[], bytes]:
    return services.later(lambda its: its.runs.artifacts.path(run_id, name).read_bytes())
