"""A model is described without its weights, as it would be measured with them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from backend.profiles.devices import peak
from backend.runs.request.spec import ProfileSpec
from workers.profiler.described import described
from workers.profiler.main import profiled
from workers.runtime.reports.reporter import Reporter

BILLION = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
}
"""The sizes of a published model of 1.24 billion parameters."""


@pytest.mark.parametrize("name", ["resnet_digits", "gpt_tiny", "vgg_digits"])
def test_sizes_are_those_of_a_measured_profile(name: str) -> None:
    import workers.zoo

    file = Path(workers.zoo.__file__).parent / f"{name}.py"
    told = described(name, file, ProfileSpec(1, 4, peak="a100"))
    found = profiled(name, file, ProfileSpec(1, 4, 1), Reporter(0))
    assert told.graph.edges == found.graph.edges
    assert told.graph.crossings == found.graph.crossings
    for one, other in zip(told.layers, found.layers, strict=True):
        assert (one.name, one.kind, one.flops) == (other.name, other.kind, other.flops)
        assert one.output_bytes == other.output_bytes
        assert one.parameter_bytes == other.parameter_bytes
        assert one.buffer_bytes == other.buffer_bytes
    kept, measured = (sum(layer.saved_bytes for layer in p.layers) for p in (told, found))
    assert kept == pytest.approx(measured, rel=0.05)
    assert (told.device, told.repetitions) == (peak("a100").name, 0)
    assert "roofline" in told.notes[0]


def test_a_billion_parameters_without_allocating_them(tmp_path: Path) -> None:
    """In a process of its own, whose peak of resident memory is asked for: the weights alone
    would be 4.9 GB."""
    (tmp_path / "config.json").write_text(json.dumps(BILLION))
    code = (
        "import re, sys; from pathlib import Path\n"
        "from backend.runs.request.spec import ProfileSpec\n"
        "from workers.profiler.described import described\n"
        "spec = ProfileSpec(1, 4, parameters={'length': 512}, peak='h100')\n"
        "p = described('llama', Path(sys.argv[1]), spec)\n"
        # getrusage would count what this test's own process held when it started that one
        "peak = re.search('VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]\n"
        "print(len(p.layers), p.parameter_bytes // 4, peak)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "config.json")],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[4],
    )
    layers, parameters, resident = map(int, done.stdout.split()[-3:])
    assert parameters == 1_235_814_400
    assert 18 <= layers <= 30
    assert resident * 1024 < 1.5e9
