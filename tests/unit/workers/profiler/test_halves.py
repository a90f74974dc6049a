"""Both halves of a backward are measured for layers of every kind, by the runtime's own split."""

from backend.runs.request.spec import ProfileSpec
from workers.profiler.main import profiled
from workers.runtime.reports.reporter import Reporter

KINDS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 32, 3, padding=1), nn.ReLU()
        self.flat, self.dense = nn.Flatten(), nn.Linear(32 * 64, 512)
        self.kinds = nn.Embedding(20000, 512)
        self.norm, self.cells = nn.LayerNorm(512), nn.LSTM(512, 64, batch_first=True)
        self.end = nn.Linear(64, 10)
    def forward(self, picture, kind):
        x = self.dense(self.flat(self.act(self.conv(picture))))
        x = self.norm(x + self.kinds(kind))
        cells, _ = self.cells(x.unsqueeze(1))
        return self.end(cells[:, -1])
def model():
    return Model()
def example(batch):
    given = torch.rand(batch, 3, 8, 8), torch.randint(20000, (batch,))
    return given, torch.randint(10, (batch,))
def loss(output, target):
    return nn.functional.cross_entropy(output, target)
"""
WEIGHTED = {"Conv2d", "Linear", "Embedding", "LSTM"}


def test_halves_of_every_kind_are_measured(write) -> None:
    """The numbers that the embedding reads have no gradient: nothing is measured there, which is
    not the same as not measured."""
    profile = profiled("kinds", write(KINDS), ProfileSpec(1, 64, 8), Reporter(0))
    found = {layer.kind: layer for layer in profile.layers}
    assert found.keys() >= WEIGHTED | {"ReLU", "LayerNorm"}
    for layer in profile.layers[1:]:
        assert 0 <= layer.input_half <= layer.backward
        assert layer.kind not in WEIGHTED or layer.backward_weight > 0
    for kind in ("Linear", "LSTM"):
        assert found[kind].input_half == found[kind].backward_input > 0
    assert found["Embedding"].input_half < found["Embedding"].backward / 4
