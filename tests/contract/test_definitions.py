"""Definitions are kept by content and version, whatever the database."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from backend.bootstrap import Backend
from backend.cluster.cluster import Device
from backend.definitions.definition import Definition, DefinitionInUse, InvalidDefinition
from backend.errors import InvalidInput, NotFound
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.request.spec import ProfileSpec

ONE = b"def model():\n    return 1\n"
TWO = b"def model():\n    return 2\n"


def test_what_was_added_comes_back(backend: Backend):
    added = backend.definitions.add("tiny.py", ONE)
    assert (added.name, added.version, added.filename, added.size) == ("tiny", 1, "tiny.py", 26)
    assert backend.definitions.get(added.id) == added
    assert backend.definitions.source(added.id) == ONE


def test_equal_bytes_under_one_name_are_one_version(backend: Backend):
    first = backend.definitions.add("tiny.py", ONE)
    assert backend.definitions.add("tiny.py", ONE) == first


def test_new_bytes_under_an_old_name_are_the_next_version(backend: Backend):
    backend.definitions.add("tiny.py", ONE)
    second = backend.definitions.add("tiny.py", TWO)
    assert second.version == 2
    assert backend.definitions.add("tiny.py", ONE).version == 1


def test_equal_bytes_under_two_names_share_their_content(backend: Backend):
    a, b = backend.definitions.add("a.py", ONE), backend.definitions.add("b.py", ONE)
    assert a.digest == b.digest
    assert a.id != b.id
    assert backend.definitions.source(b.id) == ONE


def test_the_list_is_newest_first(backend: Backend):
    added = [backend.definitions.add(f"{name}.py", ONE) for name in "abc"]
    assert list(backend.definitions.list()) == added[::-1]


@pytest.mark.parametrize("call", ["get", "source"])
def test_an_unknown_id_is_not_found(backend: Backend, call: str):
    with pytest.raises(NotFound, match="no model 7"):
        getattr(backend.definitions, call)(7)


def test_a_refused_file_leaves_nothing_behind(backend: Backend):
    with pytest.raises(InvalidDefinition):
        backend.definitions.add("broken.py", b"def model(:\n")
    assert not backend.definitions.list()


def test_many_who_upload_one_name_at_once_get_a_version_each(backend: Backend):
    def add(number: int) -> Definition:
        return backend.definitions.add("tiny.py", ONE + b"# %d\n" % number)

    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(add, range(16)))
    assert sorted(each.version for each in added) == list(range(1, 17))
    for number, each in enumerate(added):
        assert backend.definitions.source(each.id) == ONE + b"# %d\n" % number


def test_a_name_resolves_to_its_newest_version_and_a_label_to_its_own(backend: Backend):
    first = backend.definitions.add("tiny.py", ONE)
    second = backend.definitions.add("tiny.py", TWO)
    assert backend.definitions.resolve("tiny") == second
    assert backend.definitions.resolve(first.label) == first


@pytest.mark.parametrize("model", ["nothing", "tiny@3", "tiny@x", "missing.py"])
def test_what_is_not_there_does_not_resolve(backend: Backend, model: str):
    backend.definitions.add("tiny.py", ONE)
    with pytest.raises(NotFound):
        backend.definitions.resolve(model)


def test_a_path_is_added_when_it_resolves(backend: Backend, tmp_path):
    path = tmp_path / "mine.py"
    path.write_bytes(ONE)
    assert backend.definitions.resolve(str(path)).name == "mine"


def test_every_zoo_model_is_a_sound_definition(backend: Backend):
    entries = backend.definitions.zoo()
    assert entries
    for entry in entries:
        added = backend.definitions.resolve(entry.name)
        assert (added.name, added.source, added.version) == (entry.name, "zoo", 1)
        assert entry.title
        assert backend.definitions.add_zoo(entry.name) == added


CONFIG = b'{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}'
WEIGHTS = b"\x02\0\0\0\0\0\0\0{}"


def test_a_config_is_named_after_its_folder(backend: Backend, tmp_path):
    folder = tmp_path / "my-gpt"
    folder.mkdir()
    (folder / "config.json").write_bytes(CONFIG)
    added = backend.definitions.resolve(str(folder / "config.json"))
    assert (added.name, added.filename) == ("my-gpt", "config.json")
    assert backend.definitions.describe(added.id).task == "causal-lm"


def test_weights_are_kept_apart_from_models(backend: Backend):
    model = backend.definitions.add("tiny.py", ONE)
    weights = backend.definitions.add("tiny.safetensors", WEIGHTS, "tiny weights")
    assert list(backend.definitions.list()) == [model]
    assert list(backend.definitions.weights()) == [weights]


def test_a_clone_is_the_same_file_under_another_name(backend: Backend):
    first = backend.definitions.add("tiny.py", ONE)
    clone = backend.definitions.clone(first.id, "other")
    assert (clone.name, clone.version, clone.digest) == ("other", 1, first.digest)


def test_what_is_deleted_is_gone_and_its_twin_stays(backend: Backend):
    first = backend.definitions.add("tiny.py", ONE)
    clone = backend.definitions.clone(first.id, "other")
    backend.definitions.delete(first.id)
    with pytest.raises(NotFound):
        backend.definitions.get(first.id)
    assert backend.definitions.source(clone.id) == ONE
    backend.definitions.delete(clone.id)
    assert not backend.definitions.list()


def test_what_a_run_needs_is_not_deleted(backend: Backend):
    first = backend.definitions.add("tiny.py", ONE)
    run = backend.runs.submit(ProfileSpec(first.id))
    with pytest.raises(DefinitionInUse, match=f"tiny@1 is needed by run {run.id}"):
        backend.definitions.delete(first.id)
    assert backend.definitions.get(first.id) == first


def test_parameters_of_a_run_are_held_against_the_definition(backend: Backend):
    text = b"def model(width: float = 2.0):\n    return 1\n"
    wide = backend.definitions.add("wide.py", text)
    run = backend.runs.submit(ProfileSpec(wide.id, parameters={"width": 4}))
    assert run.spec.parameters == {"width": 4.0}
    with pytest.raises(InvalidDefinition, match="no parameter 'depth'"):
        backend.runs.submit(ProfileSpec(wide.id, parameters={"depth": 4}))


def test_weights_are_no_model_to_run(backend: Backend):
    weights = backend.definitions.add("tiny.safetensors", WEIGHTS)
    with pytest.raises(InvalidDefinition, match="are weights"):
        backend.runs.submit(ProfileSpec(weights.id))


def test_a_roofline_needs_a_known_device(backend: Backend):
    tiny = backend.definitions.add("tiny.py", ONE)
    with pytest.raises(InvalidInput, match="of a device 'abacus'"):
        backend.runs.submit(ProfileSpec(tiny.id, peak="abacus"))


def test_what_is_measured_already_is_found_again(backend: Backend):
    tiny = backend.definitions.add("tiny.py", ONE)
    versions = {"python": "3", "torch": "2", "stageflow": "1"}
    graph = ModelGraph.chain((Layer("a", "Linear", 1.0, 2.0, 4, 4),))
    profile = Profile("tiny", graph, 8, device="cpu", repetitions=20, versions=versions)
    small = backend.profiles.add(profile, tiny.id)
    large = backend.profiles.add(replace(profile, microbatch=16), tiny.id)
    backend.profiles.add(replace(profile, is_partial=True), tiny.id)
    backend.nodes.beat("here", (Device("cpu", None),), versions)
    nodes = backend.nodes.list()

    def measured(**changes) -> list[int]:
        spec = replace(ProfileSpec(tiny.id, 8), **changes)
        return [each.id for each in backend.profiles.measured(spec, nodes)]

    assert measured() == [small.id]
    assert measured(further=(16, 8)) == [large.id, small.id]
    assert measured(further=(32,)) == []
    assert measured(repetitions=21) == []
    assert measured(precision="bfloat16") == []
    assert measured(parameters={"width": 3}) == []
    backend.nodes.beat("here", (Device("cpu", None),), versions | {"torch": "3"})
    assert not backend.profiles.measured(ProfileSpec(tiny.id, 8), backend.nodes.list())
