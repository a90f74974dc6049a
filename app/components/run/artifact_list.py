"""The files that a run left behind."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.shell.download import download
from app.formats import plain, size
from backend.runs.history.records import StoredArtifact


def artifact_list(run_id: int, artifacts: Sequence[StoredArtifact]) -> None:
    """Name, size, digest and a download each."""
    for artifact in artifacts:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"{plain(artifact.name)} &ensp;:gray[:small[{size(artifact.size)} · "
                f"sha256 {artifact.sha256[:10]}]]",
                width="stretch",
            )
            _download(run_id, artifact)


def _download(run_id: int, artifact: StoredArtifact) -> None:
    data = services.later(lambda its: its.runs.artifact_path(run_id, artifact.name).read_bytes())
    download("Download", data, artifact.path.name, key=f"artifact-{run_id}-{artifact.name}")
