"""Programs of torch.export and weights from files: what they give, and how they fail."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

from backend.profiles.state_precision import STATE_PRECISIONS
from workers.definitions.cut import cut
from workers.definitions.errors import DefinitionFailed
from workers.definitions.loader import load
from workers.definitions.prepare import outlined, prepare
from workers.definitions.weights import FirstWeights
from workers.runtime.compute.model import Layers
from workers.runtime.compute.stages import stages


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 4)
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(4, 6)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.words(text)
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        logits: torch.Tensor = self.head(self.norm(x).view(text.shape[0], 3, 4))
        return logits


@pytest.fixture
def program(tmp_path: Path) -> Path:
    any_batch = ({0: torch.export.Dim("batch", min=1, max=64)},)
    text = torch.randint(5, (4, 3))
    exported = torch.export.export(Net(), (text,), dynamic_shapes=any_batch)
    torch.export.save(exported, tmp_path / "net.pt2")
    return tmp_path / "net.pt2"


def test_a_program_is_cut_like_the_model_it_came_from(program: Path, composed) -> None:
    whole, in_stages = composed
    definition = load(program)
    batch = definition.example(6)
    model = prepare(definition, batch)
    names = [layer.name for layer in model.layers]
    assert {"words", "layers.0", "layers.1", "norm", "head"} <= set(names)
    assert model.notes == ()
    case = definition, batch, model
    everywhere = set(range(1, len(names)))
    assert in_stages(*case, everywhere).differs_from(whole(*case)) == []


def test_a_program_keeps_its_weights(program: Path) -> None:
    one, two = (dict(load(program).model(seed).named_parameters()) for seed in (0, 1))
    assert sorted(one) == sorted(dict(Net().named_parameters()))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_weights_of_a_program_are_read_where_they_are_used(program: Path) -> None:
    definition = load(program)
    stored = program.read_bytes()
    weight = torch.export.load(program).state_dict["layers.1.weight"].detach()
    at = stored.index(weight.numpy().tobytes())
    with program.open("r+b") as file:  # which nobody does; what comes out tells when it is read
        file.seek(at)
        file.write(bytes(weight.nbytes))
    assert not definition.model().get_parameter("layers.1.weight").any()


def test_what_is_written_to_a_weight_does_not_reach_the_file(program: Path) -> None:
    before = program.read_bytes()
    with torch.no_grad():
        for weight in load(program).model().parameters():
            weight.fill_(3.0)
    assert program.read_bytes() == before


def test_a_rank_has_the_values_of_its_stages_of_a_program_alone(program: Path) -> None:
    definition = load(program)
    inputs = definition.example(6)[0]
    whole = prepare(definition, definition.example(6))
    assert whole.tracing == "exported"
    base = outlined(definition, inputs, "exported")
    assert [layer.name for layer in base.layers] == [layer.name for layer in whole.layers]
    count = len(base.layers)
    half = cut(base, 0, count // 2)
    assert {type(tensor) for tensor in (*half.parameters(), *half.buffers())} == {FakeTensor}
    kept = STATE_PRECISIONS["float32"]
    found = stages(definition, Layers(base), [(0, 4), (4, count)], [1], "float32", kept)
    values = dict(definition.model().named_parameters())
    own = dict(found.modules[1].module.named_parameters())
    assert own
    assert all(torch.equal(own[name], values[name]) for name in own)
    rest = {name: p for name, p in base.model.named_parameters() if name not in own}
    assert rest
    assert all(isinstance(weight, FakeTensor) for weight in rest.values())


def test_a_program_of_one_size_says_so(tmp_path: Path) -> None:
    exported = torch.export.export(nn.Linear(4, 3), (torch.rand(2, 4),))
    torch.export.save(exported, tmp_path / "fixed.pt2")
    definition = load(tmp_path / "fixed.pt2")
    assert definition.example(2)[1].shape == (2,)
    with pytest.raises(DefinitionFailed, match="exported for 2 samples, 3 were asked for"):
        definition.example(3)


def test_what_is_no_program(tmp_path: Path) -> None:
    file = tmp_path / "broken.pt2"
    file.write_bytes(b"PK\x03\x04 but not quite")
    with pytest.raises(DefinitionFailed, match=r"broken\.pt2 cannot be loaded"):
        load(file)


@pytest.fixture
def tied(define):
    return define(
        """
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
                self.head.weight = self.words.weight
                self.middle = nn.Linear(4, 4)
            def forward(self, text):
                return self.head(self.middle(self.words(text)))
        def model():
            return Tied()
        def example(batch):
            return torch.randint(5, (batch, 3)), torch.randint(5, (batch, 3))
        """
    )


def test_weights_from_a_file(tied, tmp_path: Path) -> None:
    other = tied.model(1).state_dict()
    del other["head.weight"]
    save_file(other, tmp_path / "w.safetensors")
    found = prepare(tied, tied.example(2), seed=0, weights=FirstWeights(tmp_path / "w.safetensors"))
    weights = found.model.state_dict()
    assert all(torch.equal(weights[name], other[name]) for name in other)
    assert torch.equal(weights["head.weight"], other["words.weight"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("middle.bias"), "lacks middle.bias"),
        (lambda state: state.update(more=torch.zeros(1)), "has unknown more"),
        (lambda state: state.update({"middle.bias": torch.zeros(9)}), "other sizes of middle.bias"),
    ],
)
def test_weights_that_do_not_fit(tied, tmp_path: Path, change, message: str) -> None:
    state = tied.model(1).state_dict()
    del state["head.weight"]
    change(state)
    save_file(state, tmp_path / "w.safetensors")
    with pytest.raises(DefinitionFailed, match=message):
        prepare(tied, tied.example(2), weights=FirstWeights(tmp_path / "w.safetensors"))


def test_weights_that_are_none(tied, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"nothing")
    with pytest.raises(DefinitionFailed, match="cannot be read as safetensors"):
        prepare(tied, tied.example(2), weights=FirstWeights(tmp_path / "w.safetensors"))
