"""Clusters kept by name, on both databases."""

import pytest

from backend.bootstrap import Backend
from backend.cluster.document import write_cluster
from backend.cluster.presets import local, preset
from backend.errors import InvalidInput, NotFound
from backend.runs.history.labels import Change, NameTaken


def test_a_cluster_is_kept_found_renamed_and_deleted(backend: Backend):
    cluster = preset("dgx-h100", 4)
    kept = backend.clusters.save("  the new room ", cluster)
    assert (kept.name, kept.cluster) == ("the new room", cluster)
    assert backend.clusters.get(kept.id) == kept
    assert backend.clusters.read("The New Room") == cluster
    assert backend.clusters.label(kept.id, Change(name="the old room")).name == "the old room"
    with pytest.raises(NotFound, match="no kept cluster 'the new room'"):
        backend.clusters.read("the new room")
    backend.clusters.save("a room", local(2))
    assert [each.name for each in backend.clusters.list()] == ["a room", "the old room"]
    assert backend.clusters.delete(kept.id).name == "the old room"
    with pytest.raises(NotFound, match=f"no cluster {kept.id}"):
        backend.clusters.delete(kept.id)


def test_a_project_has_one_of_each_name(backend: Backend):
    first = backend.clusters.save("room", local(2))
    other = backend.clusters.save("hall", local(3))
    with pytest.raises(NameTaken, match="has a cluster 'Room'") as refusal:
        backend.clusters.save("Room", local(4))
    assert "another name" in refusal.value.advice
    with pytest.raises(NameTaken):
        backend.clusters.label(other.id, Change(name="ROOM"))
    assert backend.clusters.label(first.id, Change(name="Room")).name == "Room"
    elsewhere = backend.within(backend.projects.add("Vision").id)
    assert elsewhere.clusters.save("room", local(5)).project_id == elsewhere.access.home
    assert elsewhere.clusters.read("room") == local(5)
    assert backend.clusters.read("room") == local(2)
    third = backend.within(backend.projects.add("Speech").id)
    with pytest.raises(NotFound):
        third.clusters.read("room")


@pytest.mark.parametrize("name", ["", " ", "x" * 81, "two\nlines", "dgx-h100:4", "pool:gpu"])
def test_a_name_that_could_be_something_else_is_refused(backend: Backend, name: str):
    with pytest.raises(InvalidInput, match="cannot name a cluster") as refusal:
        backend.clusters.save(name, local(2))
    assert "without a colon" in refusal.value.advice


def test_presets_and_documents_are_read_as_ever(backend: Backend):
    cluster = preset("aws-p4d", 2)
    assert backend.clusters.read("aws-p4d:2") == cluster
    assert backend.clusters.read(write_cluster(cluster)) == cluster
