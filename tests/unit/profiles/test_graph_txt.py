"""PipeDream's graph.txt, in and out."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.profiles.files import read_profile_file
from backend.profiles.graph_txt import read_graph, write_graph
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

PUBLISHED = Path(__file__).resolve().parents[3] / "../shared/profiles"
SIZES = {"alexnet": 23, "vgg16": 41, "resnet50": 177, "densenet121": 429, "gnmt_large": 96}


def node(name, text="Linear(1, 1)", forward=1.0, backward=2.0, size="8", parameters=4.0):
    return (
        f"{name} -- {text} -- forward_compute_time={forward}, backward_compute_time={backward}, "
        f"activation_size={size}, parameter_size={parameters}\n"
    )


CHAIN = (
    node("node2")
    + node("node1", "Input", 50.0, 0.0)
    + node("node3")
    + ("\tnode1 -- node2\n\tnode2 -- node3\n")
)


def test_layers_come_in_topological_order_in_seconds():
    profile = read_graph(CHAIN, "chain", microbatch=32)
    assert [layer.name for layer in profile.layers] == ["node1", "node2", "node3"]
    assert profile.layers[1] == Layer("node2", "Linear", 0.001, 0.002, 8, 4)
    assert profile.graph.edges == ((0, 1), (1, 2))
    assert (profile.name, profile.microbatch) == ("chain", 32)


def test_data_loading_is_kept_out_of_compute_and_noted():
    profile = read_graph(CHAIN)
    assert profile.layers[0].compute == 0
    assert any("50.0 ms of data loading" in note for note in profile.notes)


def test_without_a_batch_size_a_note_says_so():
    assert any("batch size" in note for note in read_graph(CHAIN).notes)
    assert not any("batch size" in note for note in read_graph(CHAIN, microbatch=4).notes)


def test_a_list_of_activations_is_one_bundle():
    assert read_graph(node("node1", size="[8.0; 4; 2]")).layers[0].output_bytes == 14


def test_a_stage_id_from_the_published_planner_is_read_over():
    line = node("node1").rstrip("\n") + " -- stage_id=3\n"
    assert read_graph(line).layers == read_graph(node("node1")).layers


def test_branches_keep_their_edges_and_the_order_of_the_trace():
    text = "".join(node(f"node{n}") for n in (10, 9, 2, 1))
    text += "\tnode1 -- node10\n\tnode1 -- node2\n\tnode2 -- node9\n\tnode10 -- node9\n"
    profile = read_graph(text)
    assert [layer.name for layer in profile.layers] == ["node1", "node2", "node10", "node9"]
    assert profile.graph.edges == ((0, 1), (0, 2), (1, 3), (2, 3))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no nodes"),
        ("not a graph", "line 1"),
        (node("node1") + "node2 -- Linear\n", "line 2"),
        (node("node1", forward="fast"), "fast"),
        (node("node1", forward=-1), "line 1"),
        (node("node1", forward="nan"), "line 1"),
        (node("node1", size="inf"), "line 1"),
        (node("node1") + node("node1"), "line 2: node1 appears twice"),
        (node("node1") + "\tnode1 -- node7\n", "line 2: the edge's 'node7'"),
        (
            node("node1") + node("node2") + "\tnode1 -- node2\n\tnode2 -- node1\n",
            "cycle through node1",
        ),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text, words):
    with pytest.raises(InvalidInput, match=words) as refusal:
        read_graph(text)
    assert "forward_compute_time" in refusal.value.advice


seconds = st.integers(0, 10**9).map(lambda nanoseconds: nanoseconds / 1e6 / 1e3)


counts = st.none() | st.floats(0, 1e18)


@given(st.lists(st.tuples(seconds, seconds, st.integers(0, 2**40), counts), min_size=1))
@example([(1.0, 1.0, 4, 0.00010858339052034291)])  # repr has 20 decimals
def test_what_is_written_is_read_back(costs):
    layers = tuple(
        Layer(f"node{n}", "Linear", forward, backward, size, size // 2, flops=count)
        for n, (forward, backward, size, count) in enumerate(costs, start=1)
    )
    profile = Profile("any", ModelGraph.chain(layers), microbatch=1)
    assert read_graph(write_graph(profile)).graph == profile.graph


def test_layers_of_other_names_are_numbered():
    layers = tuple(Layer(name, "Linear", 1, 1, 1, 1) for name in ("features.0", "head"))
    text = write_graph(Profile("named", ModelGraph.chain(layers), microbatch=1))
    assert [layer.name for layer in read_graph(text).layers] == ["node1", "node2"]


def test_a_file_is_read_by_its_ending():
    assert read_profile_file("models/chain/graph.txt", CHAIN).name == "chain"
    assert read_profile_file("mine.txt", CHAIN, 8).microbatch == 8
    with pytest.raises(InvalidInput, match="not a profile"):
        read_profile_file("chain.json", CHAIN)


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published profiles are not beside the repo")
@pytest.mark.parametrize("model", SIZES)
def test_published_profiles_survive_the_round_trip(model):
    profile = read_graph((PUBLISHED / model / "graph.txt").read_text(), model)
    assert len(profile.layers) == SIZES[model]
    assert read_graph(write_graph(profile)).graph == profile.graph


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published profiles are not beside the repo")
def test_the_known_faults_of_the_translation_profile_are_reported():
    notes = "\n".join(read_graph((PUBLISHED / "gnmt_large/graph.txt").read_text()).notes)
    assert "node5: backward takes 0.019 ms" in notes
    assert "node92: backward takes 66.2 ms" in notes
    assert "node49: Concat(2)" in notes


def test_a_file_that_is_no_graph_of_a_model_by_its_size_is_not_read():
    with pytest.raises(InvalidInput, match="the most that is read"):
        read_profile_file("graph.txt", b"\n" * (4 * 2**20 + 1))
