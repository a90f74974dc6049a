"""What the fault finder reports, and what it leaves in peace."""

from backend.profiles.faults import find_faults
from backend.profiles.graph_txt import GraphNode


def node(number, text="Linear(4, 4)", forward=0.010, backward=0.020, output=8, parameters=4):
    return GraphNode(f"node{number}", text, forward, backward, output, parameters)


def test_a_sound_chain_has_no_faults():
    nodes = [node(number) for number in range(4)]
    assert list(find_faults(nodes, [(0, 1), (1, 2), (2, 3)])) == []


def test_a_concatenation_smaller_than_its_inputs():
    nodes = [node(0), node(1), node(2, "Concat(1)", output=8), node(3, "Concat(1)", output=16)]
    faults = list(find_faults(nodes, [(0, 2), (1, 2), (0, 3), (1, 3)]))
    assert len(faults) == 1
    assert faults[0].startswith(
        "node2: Concat(1) has an output of 8 bytes, its inputs together 16 bytes"
    )


def test_a_backward_that_was_not_measured():
    nodes = [node(0), node(1, "LSTM(1)", backward=0.0001), node(2, "ReLU", 0.01, 0.0, parameters=0)]
    faults = list(find_faults(nodes, []))
    assert len(faults) == 1
    assert faults[0].startswith("node1: backward takes 0.100 ms beside 10.000 ms forward")


def test_a_layer_that_is_slower_than_its_twins():
    nodes = [*(node(number) for number in range(4)), node(4, backward=0.090)]
    assert list(find_faults(nodes, [])) == [
        "node4: backward takes 90.0 ms where its 4 equal layers take 20.0 ms"
    ]


def test_layers_of_another_size_are_no_twins():
    nodes = [*(node(number) for number in range(4)), node(4, backward=0.090, output=999)]
    assert list(find_faults(nodes, [])) == []
