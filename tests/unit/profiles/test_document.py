"""A profile as JSON."""

import json
from dataclasses import replace

import pytest

from backend.errors import InvalidInput
from backend.profiles.document import read_profile, write_profile
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = (Layer("a", "Conv2d", 0.1, 0.2, 30, 40, 0.05), Layer("b.0", "add", 0, 0, 5, 0))
PROFILE = Profile("tiny", ModelGraph.chain(LAYERS), 16, "cpu", 0.3, 0.6, 20, ("a note",))


def changed(**fields):
    """The document of PROFILE with fields of its first layer changed."""
    document = json.loads(write_profile(PROFILE))
    document["profile"]["graph"]["layers"][0].update(fields)
    return json.dumps(document)


def test_what_is_written_is_read_back():
    assert read_profile(write_profile(PROFILE)) == PROFILE


def test_too_many_values_are_refused_before_they_are_in_memory():
    with pytest.raises(InvalidInput, match="are too many"):
        read_profile(b"[" + b"1," * 2_000_000 + b"1]")


def test_the_document_says_what_it_is():
    document = json.loads(write_profile(PROFILE))
    assert (document["format"], document["version"]) == ("stageflow-profile", 1)


def test_another_version_is_refused():
    document = json.loads(write_profile(PROFILE)) | {"version": 2}
    with pytest.raises(InvalidInput, match="not a profile: version"):
        read_profile(json.dumps(document))


def test_an_edge_backwards_is_refused():
    document = json.loads(write_profile(PROFILE))
    document["profile"]["graph"]["edges"] = [[1, 0]]
    with pytest.raises(InvalidInput, match="1 -> 0"):
        read_profile(json.dumps(document))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a profile"),
        (b"\xff\xfe", "not a profile"),
        ("{}", "format"),
        ("[]", "not a profile"),
        (changed(forward="fast"), "graph.layers.0.forward"),
        (changed(forward=-1), "layer 'a': forward is -1"),
        (changed(backward=float("nan")), "layer 'a': backward is nan"),
        (changed(output_bytes=1.5), "output_bytes"),
        (changed(name="b.0"), "layer 'b.0' appears 2 times"),
        (write_profile(replace(PROFILE, microbatch=0)), "microbatch: 0"),
        (write_profile(replace(PROFILE, graph=ModelGraph((), ()))), "no layers"),
    ],
)
def test_a_broken_document_is_refused_in_words(data, words):
    with pytest.raises(InvalidInput, match=words) as refusal:
        read_profile(data)
    assert refusal.value.advice
