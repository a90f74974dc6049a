"""A profile has the model's layers, sizes and positive times; its progress is told."""

from collections import Counter
from pathlib import Path

import pytest

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.profiles.profile import Profile
from backend.runs.events import ProfileReady, Progress, Started, read_line
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec
from workers.profiler import main
from workers.profiler.main import profiled
from workers.profiler.measure import WARM_UP
from workers.profiler.whole_profile import Stopped
from workers.runtime.reports.reporter import Reporter


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


NET = """
def model(width: int = 8):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3))
def example(batch):
    return torch.rand(batch, 4), torch.randint(3, (batch,))
"""


def test_sizes_are_measured_and_not_guessed(write) -> None:
    """The first layer keeps its input, which is the bundle's; the second its own result (the
    first one's output is not kept); the third the same tensor again, and the loss the
    logarithms of the shares and the targets."""
    profile = profiled("net", write(NET), ProfileSpec(1, 10, 1), Reporter(0))
    first, second, third = profile.layers
    assert first.saved_bytes == 0
    assert second.saved_bytes == 10 * 8 * 4
    assert 10 * 3 * 4 + 10 * 8 <= third.saved_bytes < 10 * 3 * 4 + 10 * 8 + 64
    assert [layer.flops for layer in profile.layers] == [2 * 10 * 4 * 8, 0, 2 * 10 * 8 * 3]
    kept = 3 * profile.parameter_bytes + sum(layer.saved_bytes for layer in profile.layers)
    assert kept <= profile.peak_bytes < 3 * kept
    assert [c.bytes for c in profile.graph.crossings] == [320, 320]
    assert profile.graph.cut_bytes == (320, 320, 0)


CHAIN = """
class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 64, bias=False)
        self.second = nn.Linear(64, 32, bias=False)
        self.norm = nn.ReLU()
    def forward(self, x):
        return self.norm(self.second(self.first(x)))
def model():
    return Wide()
def loss(output, target):
    return output.sum()
def example(batch):
    return torch.rand(batch, 16), torch.randint(3, (batch,))
"""


def test_a_layer_at_work_has_gradients_alive_that_nobody_counts(write) -> None:
    """What comes back, what goes on, and the gradients of weights before they are added. The
    input has no gradient."""
    profile = profiled("chain", write(CHAIN), ProfileSpec(1, 10, 1), Reporter(0))
    first, second, last = (layer.work_bytes for layer in profile.layers)
    assert first == 4 * (10 * 64 + 16 * 64)
    assert second == 4 * (10 * 32 + 10 * 64 + 64 * 32)
    assert 4 * 10 * 32 <= last < 4 * 10 * 32 + 64  # that of the loss is one number
    by_parts = ProfileSpec(1, 10, 1, by_parts=True)
    alone = profiled("chain", write(CHAIN), by_parts, Reporter(0))
    assert [layer.work_bytes for layer in alone.layers] == [first, second, last]


def test_what_waits_for_the_weights_half_is_what_arrives_at_each_layer(write) -> None:
    """The input has no gradient, so the first layer's backward is not in halves: it keeps what
    comes to it. An activation without weights keeps nothing."""
    profile = profiled("chain", write(CHAIN), ProfileSpec(1, 10, 1), Reporter(0))
    assert [layer.deferred_bytes for layer in profile.layers] == [4 * 10 * 64, 4 * 10 * 32, 0]
    alone = profiled("chain", write(CHAIN), ProfileSpec(1, 10, 1, by_parts=True), Reporter(0))
    assert [layer.deferred_bytes for layer in alone.layers] == [4 * 10 * 64, 4 * 10 * 32, 0]


def test_the_process_is_measured_beside_the_model(write) -> None:
    """Twice the weights are no more of it; torch alone takes more than this."""
    profile = profiled("net", write(NET), ProfileSpec(1, 10, 1), Reporter(0))
    assert 100 * 2**20 < profile.process_bytes < 2**31


def test_parameters_change_the_model(write) -> None:
    spec = ProfileSpec(1, 10, 1, parameters={"width": 16})
    profile = profiled("net", write(NET), spec, Reporter(0))
    assert profile.layers[0].output_bytes == 10 * 16 * 4
    assert profile.parameters == {"width": 16}
    assert profile.versions["torch"]


def test_halves_of_the_backward_are_timed_apart(zoo_file) -> None:
    profile = profiled("mlp", zoo_file("mlp"), ProfileSpec(1, 256, 8), Reporter(0))
    inner = [layer for layer in profile.layers[2:] if layer.kind == "Linear"]
    assert all(0 < layer.backward_input <= layer.backward for layer in inner)


def test_half_precision_halves_the_activations(write) -> None:
    full, half = (
        profiled("net", write(NET), ProfileSpec(1, 16, 1, precision=precision), Reporter(0))
        for precision in ("float32", "bfloat16")
    )
    assert half.layers[0].output_bytes * 2 == full.layers[0].output_bytes
    assert half.layers[0].parameter_bytes == full.layers[0].parameter_bytes
    assert half.precision == "bfloat16"


def job(folder: Path, file: Path, spec: ProfileSpec) -> Path:
    path = folder / "job.json"
    path.write_bytes(to_json(Job, Job(1, 1, "net", spec, str(file), str(folder))))
    return path


def ready(text: str) -> list[Profile]:
    events = [read_line(line) for line in text.splitlines()]
    paths = [Path(event.path) for event in events if isinstance(event, ProfileReady)]
    return [from_json(Profile, path.read_bytes()) for path in paths]


def test_several_sizes_in_one_job(write, tmp_path: Path, capsys, restored_signals) -> None:
    spec = ProfileSpec(1, 4, 1, further=(2, 8, 4, 8))
    assert main.run(job(tmp_path, write(NET), spec), Reporter(0)) == 0
    assert [profile.microbatch for profile in ready(capsys.readouterr().out)] == [2, 8, 4]


class StoppedAfter(Reporter):
    """Stands in for a SIGTERM that comes after so many counted repetitions."""

    def __init__(self, repetitions: int) -> None:
        super().__init__(0)
        self.repetitions = repetitions

    def __call__(self, event) -> None:
        super().__call__(event)
        if event == Progress("layers", self.repetitions, 5):
            raise Stopped
        if not self.repetitions and isinstance(event, Progress) and event.phase == "warm up":
            raise Stopped


def test_a_stopped_job_leaves_a_partial_profile(
    write, tmp_path: Path, capsys, restored_signals
) -> None:
    path = job(tmp_path, write(NET), ProfileSpec(1, 4, 5, further=(2,)))
    assert main.run(path, StoppedAfter(3)) == 0
    (profile,) = ready(capsys.readouterr().out)
    assert (profile.microbatch, profile.repetitions, profile.is_partial) == (2, 3, True)
    assert profile.layers[0].forward > 0
    assert profile.layers[0].saved_bytes is None


def test_stopped_before_anything_is_counted(write) -> None:
    with pytest.raises(Stopped):
        profiled("net", write(NET), ProfileSpec(1, 4, 5), StoppedAfter(0))


@pytest.fixture
def restored_signals():
    import signal

    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
