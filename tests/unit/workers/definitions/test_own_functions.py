"""Gradients of the model's own, checkpoints and sparse embeddings, and the loss of the inputs."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from backend.definitions.forms import task_of
from tests.unit.workers.definitions.linears import Linears, names, of
from workers.data import catalog
from workers.definitions.prepare import prepare
from workers.definitions.samples import Answers


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


def test_a_function_with_its_own_gradient_is_one_operation() -> None:
    class Model(Linears):
        def forward(self, x):
            return self.b(Doubled.apply(self.a(x)))

    assert names(of(Model())) == ["a", "Doubled", "b"]


def test_an_activation_that_a_file_keeps_for_all_models_is_traced_through() -> None:
    shared = nn.Sequential(nn.GELU(), nn.Tanh())

    class Model(Linears):
        def forward(self, x):
            return self.b(shared(self.a(x)))

    assert names(of(Model())) == ["a", "gelu", "tanh", "b"]


def test_both_ways_of_checkpointing_are_traced_away_with_a_note() -> None:
    class Model(Linears):
        def forward(self, x):
            x = checkpoint(self.b, self.a(x), use_reentrant=True)
            return checkpoint(self.c, x, use_reentrant=False)

    found = of(Model())
    assert names(found) == ["a", "b", "c"]
    assert "plan's recomputation" in found.notes[0]


def test_what_stand_ins_cannot_pass_is_kept_whole_by_itself() -> None:
    class Branch(Linears):
        def forward(self, x):
            return self.a(x) if x.sum() > 0 else self.b(x)

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.branch = nn.Linear(4, 4), Branch()

        def forward(self, x):
            return self.branch(self.before(x))

    found = of(nn.Sequential(nn.Linear(4, 4), Inner()))
    assert names(found) == ["0", "1.before", "1.branch"]
    assert found.notes[0].startswith("1.branch is kept whole: test_own_functions.py, line")


def test_a_sparse_embedding_is_told_to_be_dense(define) -> None:
    definition = define("""
        def model(): return nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 9))
        def example(n): return torch.randint(9, (n, 3)), torch.randint(9, (n, 3))
    """)
    notes = prepare(definition, definition.example(2)).notes
    assert any("0 asks for sparse gradients; here they are dense" in note for note in notes)


def test_layers_that_torch_computes_in_one_are_told(define) -> None:
    definition = define("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.many = nn.GRU(4, 8, 3, batch_first=True)
                self.one = nn.GRU(8, 4, batch_first=True)
            def forward(self, x): return self.one(self.many(x)[0])[0][:, -1]
        def model(): return Net()
        def example(n): return torch.rand(n, 3, 4), torch.randint(4, (n,))
    """)
    (note,) = prepare(definition, definition.example(2)).notes
    assert note.startswith("many is one layer with 88% of the weights: torch computes the 3 layers")
    assert "Write 3 modules of one layer each" in note


def test_a_loss_of_three_is_given_the_inputs(define) -> None:
    definition = define("""
        def model(): return nn.Linear(3, 3)
        def example(n): return torch.rand(n, 3), torch.zeros(n)
        def loss(output, target, inputs): return F.mse_loss(output, inputs) + target.sum()
    """)
    inputs, answers = catalog.example(definition, 2)
    assert isinstance(answers, Answers)
    assert definition.loss(inputs, answers) == 0
    assert len(prepare(definition, (inputs, answers)).layers) == 1


def test_the_tasks_of_configs_are_read() -> None:
    def of_class(name: str, **fields: object) -> str:
        return task_of({"architectures": [name], **fields})

    assert of_class("WhisperForConditionalGeneration", num_mel_bins=80) == "audio-to-text"
    assert of_class("HubertForSequenceClassification", conv_stride=[5]) == "audio-classification"
    assert of_class("Wav2Vec2ForCTC", conv_stride=[5]) == "audio-ctc"
    assert of_class("CLIPModel", vision_config={}) == "image-text"
    assert of_class("BlipForConditionalGeneration", vision_config={}) == "image-to-text"
    assert of_class("BertForQuestionAnswering") == "question-answering"
    assert of_class("T5ForConditionalGeneration") == "seq2seq-lm"
