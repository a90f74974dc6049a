"""What an operation gives as a tuple crosses cuts as tensors."""

import torch
from torch import Tensor, fx, nn

from tests.unit.workers.definitions.linears import names
from workers.definitions.cut import cut
from workers.definitions.layering import layered
from workers.definitions.tracing.unpacking import parts_of, unpack


class Recurrent(nn.Module):
    """Returns its states, as language models do."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.LSTM(4, 4, batch_first=True), nn.LSTM(4, 4, batch_first=True)
        self.last = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> object:
        x, first = self.one(x)
        x, second = self.two(x)
        return self.last(x), {"states": (first, second), "cell": second[-1]}


def test_states_that_are_returned_join_no_layers() -> None:
    model, x = Recurrent(), torch.rand(2, 5, 4)
    found = layered(model, x)
    assert names(found) == ["one", "two", "last"]
    bundle = (x,)
    for number in range(2):
        bundle = cut(found, number, number + 1)(*bundle)
    output, kept = cut(found, 2, 3)(*bundle)
    expected, states = model(x)
    assert torch.equal(output, expected)
    flat = [*kept["states"][0], *kept["states"][1], kept["cell"]]
    wanted = [*states["states"][0], *states["states"][1], states["cell"]]
    assert all(map(torch.equal, flat, wanted))


def test_a_tuple_whose_parts_are_read_at_once_stays_as_it_is() -> None:
    graph = fx.Graph()
    pair = graph.call_function(torch.max, (graph.placeholder("x"), 0))
    graph.output(graph.call_function(torch.Tensor.clone, (pair,)))
    assert not unpack(graph, {})
    assert parts_of((torch.ones(1), (2, []))) == (None, (None, None))
    assert parts_of(torch.rand(2, 2).max(0)) is None  # has names, by which it may be read


def test_parts_are_given_to_every_reader() -> None:
    graph = fx.Graph()
    pair = graph.call_function(torch.split, (graph.placeholder("x"), 2))
    late = graph.call_function(torch.cat, (pair,))
    item = graph.call_function(torch.neg, (late,))
    graph.output((item, pair))
    assert unpack(graph, {pair: (None, None)})
    x = torch.arange(4.0)
    negated, parts = fx.GraphModule(nn.Module(), graph)(x)
    assert torch.equal(negated, -x)
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3]]
    assert not unpack(graph, {pair: (None, None)})


def test_what_is_a_tuple_in_one_mode_alone_stays_as_it_is() -> None:
    class Auxiliary(Recurrent):
        def forward(self, x: Tensor) -> object:
            x, state = self.one(x)
            return (self.last(x), state[0].sum()) if self.training else self.last(x)

    model, x = Auxiliary(), torch.rand(2, 5, 4)
    found = layered(model, x)
    whole = cut(found, 0, len(found.layers))
    assert torch.equal(whole.train()(x)[0], model.train()(x)[0])
    assert torch.equal(whole.eval()(x), model.eval()(x))
