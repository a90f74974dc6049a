"""Every way a definition can be wrong, with the user's own line in the message."""

from pathlib import Path

import pytest
import torch

from workers.definitions.errors import DefinitionFailed, ModelRaised
from workers.definitions.loader import MODULE_NAME, cross_entropy, load
from workers.definitions.prepare import prepare

GOOD = """
def model():
    return nn.Linear(4, 3)

def example(batch):
    return torch.rand(batch, 4), torch.randint(3, (batch,))
"""


def test_a_good_definition(define) -> None:
    definition = define(GOOD)
    assert torch.equal(definition.model(5).weight, definition.model(5).weight)
    assert not torch.equal(definition.model(5).weight, definition.model(6).weight)
    inputs, targets = definition.example(7)
    assert (len(inputs), len(targets)) == (7, 7)
    assert definition.data_name == "synthetic"
    assert definition.loss is cross_entropy


def test_data_decides_the_default_data_set(define) -> None:
    assert define(GOOD + 'DATA = "digits"').data_name == "digits"
    assert define(GOOD + "def data(): return example(8), example(2)").data_name == "definition"


def test_own_loss_and_own_data(define) -> None:
    text = (
        "def loss(output, target): return output.sum()\ndef data(): return example(8), example(2)"
    )
    definition = define(GOOD + text)
    assert definition.loss(torch.ones(2, 2), torch.zeros(2)) == 4
    train, held_out = definition.data()
    assert (len(train[0]), len(held_out[0])) == (8, 2)


def test_dataclasses_and_super_work_in_a_definition(define) -> None:
    definition = define(
        """
        from dataclasses import dataclass
        @dataclass
        class Sizes:
            width: "int" = 4
        class Mine(nn.Linear):
            def __init__(self):
                super().__init__(Sizes().width, 2)
        def model():
            return Mine()
        """
    )
    model = definition.model()
    assert type(model).__module__ == MODULE_NAME
    assert model.in_features == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def model(:\n    pass", "mine.py, line 4: SyntaxError: invalid syntax"),
        ("\n\nx = 1 / 0\ndef model(): pass", "mine.py, line 6: ZeroDivisionError"),
        ("import nothing_like_it", "line 4: ModuleNotFoundError"),
        ("raise SystemExit(3)", "line 4: SystemExit: 3"),
        ("x = 1", "there is no function model()"),
        ("model = 3", "there is no function model()"),
    ],
)
def test_a_file_that_cannot_be_loaded(write, text: str, message: str) -> None:
    with pytest.raises(DefinitionFailed, match=message.replace("(", r"\(").replace(")", r"\)")):
        load(write(text))


def test_a_missing_module_is_named_in_the_advice(write) -> None:
    with pytest.raises(DefinitionFailed) as raised:
        load(write("import nothing_like_it"))
    assert "Install nothing_like_it" in raised.value.advice


def test_a_factory_that_raises_names_its_line_and_keeps_only_its_frames(define) -> None:
    definition = define("def inner():\n    raise ValueError('bad width')\ndef model(): inner()")
    with pytest.raises(DefinitionFailed, match=r"line 5: ValueError: bad width \(model\(\)") as e:
        definition.model()
    assert "in inner" in e.value.detail
    assert "loader.py" not in e.value.detail


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def model(): return 3", "returned a int, not a torch nn.Module"),
        ("def model(): return None", "returned a NoneType"),
    ],
)
def test_a_factory_that_returns_something_else(define, text: str, message: str) -> None:
    with pytest.raises(DefinitionFailed, match=message):
        define(text).model()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "return torch.rand(batch, 4)[0], 3",
            r"two tensors \(or tuples or dicts of them\), not Tensor and int",
        ),
        ("return torch.rand(batch, 4)", "must return two tensors"),
        ("return torch.rand(2, 4), torch.zeros(2)", "2 inputs and 2 targets; 5 were asked for"),
        ("return torch.rand(batch, 4), torch.zeros(3)", "5 inputs and 3 targets"),
    ],
)
def test_an_example_that_breaks_the_contract(define, body: str, message: str) -> None:
    definition = define(f"def model(): return nn.Linear(4, 3)\ndef example(batch): {body}")
    with pytest.raises(DefinitionFailed, match=message):
        definition.example(5)


def test_no_example_and_no_data(define) -> None:
    with pytest.raises(DefinitionFailed, match=r"no function example\(\)"):
        define("def model(): return nn.Linear(4, 3)").example(2)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("def model(): return nn.Linear(5, 3)", r"mat1 and mat2 .*the model raised it on inputs"),
        ("def loss(o, t): raise KeyError('x')", r"line 10: KeyError: 'x' \(the loss raised"),
        ("def loss(o, t): return o.sum(1)", r"the loss is \(2,\), not a single number"),
        ("def loss(o, t): return 3.0", "the loss is float, not a single number"),
    ],
)
def test_a_model_or_loss_that_raises(define, extra: str, message: str) -> None:
    definition = define(GOOD + extra)
    with pytest.raises(ModelRaised, match=message):
        prepare(definition, definition.example(2))


def test_the_users_line_in_a_forward_is_named(define) -> None:
    definition = define(
        """
        class Mine(nn.Module):
            def forward(self, x):
                return x.view(-1, 1000)
        def model():
            return Mine()
        def example(batch):
            return torch.rand(batch, 4), torch.zeros(batch)
        """
    )
    with pytest.raises(ModelRaised, match=r"mine\.py, line 7: RuntimeError") as raised:
        prepare(definition, definition.example(2))
    assert "x.view(-1, 1000)" in raised.value.detail


def test_default_loss_takes_sequences() -> None:
    logits, targets = torch.rand(2, 5, 7), torch.randint(7, (2, 5))
    expected = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets)
    assert torch.allclose(cross_entropy(logits, targets), expected)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DefinitionFailed, match="FileNotFoundError"):
        load(tmp_path / "gone.py")


SEVERAL = """
class Sum(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(width, 3)
    def forward(self, mask, x):
        return self.a(x * mask)
def model(width: int = 4):
    return Sum(width)
def example(batch, width: int = 4, length=2):
    x = torch.rand(batch, length, width)
    return {"x": x, "mask": torch.ones(batch, length, 1)}, torch.randint(3, (batch, length))
"""


def test_inputs_by_name_reach_the_arguments_of_that_name(define) -> None:
    definition = define(SEVERAL)
    found = prepare(definition, definition.example(5))
    assert found.notes == ()
    assert [spec.shape for spec in found.specs[0]] == [(5, 2, 4), (5, 2, 1)]
    assert "a.weight" in dict(found.model.named_parameters())


def test_parameters_go_to_every_function_that_names_them(write) -> None:
    definition = load(write(SEVERAL), {"width": 6, "length": 3})
    assert definition.model().a.in_features == 6
    inputs, _ = definition.example(2)
    assert inputs["x"].shape == (2, 3, 6)


def test_an_unknown_parameter_is_named(write) -> None:
    with pytest.raises(DefinitionFailed, match="no function has a parameter depth"):
        load(write(SEVERAL), {"depth": 6})


def test_what_is_no_form(tmp_path: Path) -> None:
    file = tmp_path / "model.exe"
    file.write_bytes(b"MZ")
    with pytest.raises(DefinitionFailed, match="no known form of a definition"):
        load(file)
