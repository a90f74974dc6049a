"""Whatever a forward changes, it is as it was after a model has run untouched."""

import functools
import random
from collections import OrderedDict, deque
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from workers.definitions.module_state.module_state import ModuleState
from workers.definitions.module_state.untouched import untouched


class Slotted:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


class Everywhere(nn.Module):
    """Keeps something in every way that a definition may."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("later", None)
        self.tensor, self.array, self.count, self.none = torch.ones(4), np.ones(3), 0, None
        self.listed, self.named, self.ordered = [1, [2]], {"a": [1]}, OrderedDict(a=1, b=2)
        self.queue, self.group = deque([1], maxlen=2), {1}
        self.space, self.slotted = SimpleNamespace(n=0), Slotted()
        self.own = torch.Generator().manual_seed(3)
        self.python, self.numpy = random.Random(3), np.random.default_rng(3)
        self.bound = functools.partial(self.named.get, "a")
        calls = [0]

        def hook(module: nn.Module, inputs: object, output: torch.Tensor) -> None:
            nonlocal calls
            calls[0] += 1
            hook.calls = calls[0]
            calls = [*calls]

        hook.calls = 0
        self.hook = hook
        self.norm.register_forward_hook(hook)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x)
        self.mean = 0.9 * self.mean + x.detach().mean(0)
        self.later = x.detach()
        self.tensor.add_(1)
        self.array += 1
        self.count += 1
        self.none, self.new = x, 1
        self.listed[1].append(3)
        self.listed.append(4)
        self.named["b"] = self.named.pop("a", 0)
        self.ordered.move_to_end("a")
        self.queue.append(2)
        self.queue.append(3)
        self.group.add(2)
        self.space.n += 1
        self.slotted.n += 1
        self.slotted = Slotted()
        noise = torch.randn(4) + torch.randn(4, generator=self.own)
        noise += random.random() + self.python.random() + self.numpy.random() + np.random.rand()
        return x + noise


def kept(model: Everywhere) -> dict[str, object]:
    """What is kept, as values that are compared by equality."""
    return {
        "buffers": {name: buffer.tolist() for name, buffer in model.named_buffers()},
        "tensors": (model.tensor.tolist(), model.array.tolist()),
        "numbers": (model.count, model.none, hasattr(model, "new")),
        "lists": (str(model.listed), str(model.named), [*model.ordered], [*model.queue]),
        "others": (sorted(model.group), model.space.n, model.slotted.n, model.hook.calls),
        "cell": model.hook.__closure__[0].cell_contents,
        "own": (model.own.get_state().tolist(), model.python.getstate()),
        "numpy": model.numpy.bit_generator.state,
        "global": (random.getstate(), torch.get_rng_state().tolist()),
        "numpy.random": (np.random.get_state()[1].tolist(), np.random.get_state()[2]),
        "mode": [part.training for part in model.modules()],
    }


def test_everything_is_as_it_was() -> None:
    model = Everywhere()
    model.norm.eval()
    before, objects = kept(model), {name: id(value) for name, value in vars(model).items()}
    buffers = [id(buffer) for buffer in model.buffers()]
    with untouched(model):
        for _ in range(3):
            model.train()(torch.rand(5, 4))
        assert all(kept(model)[name] != before[name] for name in before)
    assert kept(model) == before
    assert {name: id(value) for name, value in vars(model).items()} == objects
    assert [id(buffer) for buffer in model.buffers()] == buffers


def _raise(model: Everywhere, *_: object) -> None:
    model.count += 1
    raise ArithmeticError


def test_an_error_inside_leaves_no_trace_either() -> None:
    model = Everywhere()
    model.norm.register_forward_hook(functools.partial(_raise, model))
    before = kept(model)
    with pytest.raises(ArithmeticError), untouched(model):
        model(torch.rand(5, 4))
    assert kept(model) == before


@given(st.lists(st.sampled_from(["add", "pop", "clear", "nest"]), max_size=8), st.integers(0, 3))
def test_a_list_comes_back_whatever_was_done_to_it(steps: list[str], size: int) -> None:
    model = nn.Module()
    model.held = [[number] for number in range(size)]
    inner = [*model.held]
    with untouched(model):
        for step in steps:
            match step:
                case "add":
                    model.held.append(1)
                case "clear":
                    model.held.clear()
                case "pop" if model.held:
                    model.held.pop()
                case _:
                    model.held = [model.held, *inner]
                    for each in inner:
                        each.append("more")
    assert model.held == [[number] for number in range(size)]
    assert all(one is other for one, other in zip(model.held, inner, strict=True))


def test_names_and_classes_of_the_file_come_back(define) -> None:
    model = define(
        """
        N, TABLE = 0, {}
        class Net(nn.Module):
            calls = 0
            def forward(self, x, seen=[]):
                global N
                N += 1
                TABLE[N] = x
                seen.append(x)
                type(self).calls += 1
                return x
        def model(): return Net()
        """
    ).model()
    file = type(model).forward.__globals__
    with untouched(model):
        model(torch.rand(1))
        assert (file["N"], len(file["TABLE"]), type(model).calls) == (1, 1, 1)
    assert (file["N"], file["TABLE"], type(model).calls) == (0, {}, 0)
    assert type(model).forward.__defaults__ == ([],)


def test_differences_are_named_by_their_paths() -> None:
    model = nn.Sequential(Everywhere())
    before = ModuleState.of(model)
    model(torch.rand(5, 4))
    found = {each.path: each for each in before.differences(ModuleState.of(model))}
    names = {"0.count", "0.mean", "0.tensor", "0.named.b", "0.own", "0.norm.running_mean", "random"}
    assert names <= found.keys()
    assert {path for path in found if found[path].is_buffer} == {
        *("0.mean", "0.later", "0.norm.running_mean", "0.norm.running_var"),
        "0.norm.num_batches_tracked",
    }
    assert found["0.norm.running_mean"].module == "0.norm"
    assert found["random"].module is None
    assert {path for path in found if found[path].is_random} >= {"0.own", "0.numpy", "random"}
    assert before.differences(before) == ()


def test_what_is_not_a_number_is_no_difference() -> None:
    model = nn.Module()
    model.register_buffer("odd", torch.tensor([float("nan"), 1.0]))
    model.number = float("nan")
    assert ModuleState.of(model).differences(ModuleState.of(model)) == ()


def test_a_state_is_met_again_and_gone_after() -> None:
    model, x = Everywhere(), torch.rand(5, 4)
    first = ModuleState.of(model)
    one = model(x)
    later, mean = kept(model), model.mean
    with first.met_again(model):
        assert torch.equal(model(x), one)
    assert kept(model) == later
    assert model.mean is mean


def test_large_data_of_the_file_are_not_copied(define) -> None:
    model = define("DATA = torch.zeros(2**20)\ndef model(): return nn.Linear(2, 2)").model()
    assert not any(each.path.endswith("DATA") for each in ModuleState.of(model).kept)
