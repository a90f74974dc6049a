"""A profile has the model's layers, sizes and positive times; its progress is told."""

from collections import Counter
from pathlib import Path

import pytest

from backend.errors import InvalidInput
from backend.runs.events import Progress, Started, read_line
from backend.runs.spec import ProfileSpec
from workers.profiler.main import profiled
from workers.profiler.measure import WARM_UP
from workers.runtime.reporter import Reporter


@pytest.fixture
def zoo_file():
    import workers.zoo

    return lambda name: Path(workers.zoo.__file__).parent / f"{name}.py"


def test_a_chain(zoo_file, capsys: pytest.CaptureFixture[str]) -> None:
    profile = profiled("mlp", zoo_file("mlp"), ProfileSpec(1, 8, 3), Reporter(0))
    assert (profile.name, profile.microbatch, profile.repetitions) == ("mlp", 8, 3)
    assert [layer.kind for layer in profile.layers[:3]] == ["Flatten", "Linear", "ReLU"]
    assert profile.layers[1].output_bytes == 8 * 256 * 4
    assert profile.layers[1].parameter_bytes == (64 * 256 + 256) * 4
    assert profile.layers[3].forward > 0
    assert profile.layers[3].backward > 0
    assert profile.layers[3].update > 0
    assert profile.whole_forward > 0
    assert profile.whole_backward > 0
    events = [read_line(line) for line in capsys.readouterr().out.splitlines()]
    phases = Counter(event.phase for event in events if isinstance(event, Progress))
    assert phases == {"load": 1, "warm up": WARM_UP, "layers": 3}
    assert Started(0) in events
    assert Progress("layers", 3, 3) in events


def test_a_graph_keeps_its_edges(zoo_file) -> None:
    profile = profiled("resnet", zoo_file("resnet_digits"), ProfileSpec(1, 2, 1), Reporter(0))
    assert len(profile.graph.edges) > len(profile.layers) - 1
    names = [layer.name for layer in profile.layers]
    assert len(set(names)) == len(names)


def test_a_model_that_cannot_be_cut_says_so(write) -> None:
    file = write(
        """
        class Branch(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 3)
            def forward(self, x):
                return self.a(x) if x.sum() > 0 else self.a(-x)
        def model():
            return Branch()
        def example(batch):
            return torch.rand(batch, 4), torch.randint(3, (batch,))
        """
    )
    profile = profiled("branch", file, ProfileSpec(1, 2, 1), Reporter(0))
    assert [layer.name for layer in profile.layers] == ["Branch"]
    assert "one layer" in profile.notes[0]


@pytest.mark.parametrize(("microbatch", "repetitions"), [(0, 3), (4, 0)])
def test_nothing_to_measure(zoo_file, microbatch: int, repetitions: int) -> None:
    with pytest.raises(InvalidInput, match="a profile of"):
        profiled("mlp", zoo_file("mlp"), ProfileSpec(1, microbatch, repetitions), Reporter(0))
