"""Every parser of what people, programs and other machines send: only our own errors come out."""

import io
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from app.gate.oidc import PendingSignIn, flow_of
from backend.cluster.document import read_cluster, write_cluster
from backend.cluster.presets import local
from backend.codec import from_json, to_json
from backend.comparison.pairs import read_pairs
from backend.comparison.variations import read_prices
from backend.definitions.check import check
from backend.definitions.parameters import checked, parsed
from backend.errors import StageflowError
from backend.pipeline.exchange.chrome_trace import read_trace, write_trace
from backend.pipeline.exchange.document import read_program, write_program
from backend.pipeline.exchange.forms import read_any
from backend.pipeline.exchange.text import format_program, parse_program
from backend.pipeline.exchange.torch_csv import read_csv
from backend.pipeline.notation import parse_action
from backend.pipeline.verify import verify
from backend.planning.cuts import read_cut
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predicted_program
from backend.profiles.document import check_profile, read_profile, write_profile
from backend.profiles.files import read_profile_file
from backend.profiles.graph_txt import write_graph
from backend.runs.events import Finished, Metrics, RankError, read_line, write_line
from backend.runs.request.spec import TrainSpec
from backend.storage.backup.manifest import Manifest, read_manifest, write_manifest
from tests.app.seed import a_profile
from tests.fuzz.mutations import mutated, mutated_bytes

PROFILE = a_profile(2)
NUM_LAYERS = len(PROFILE.layers)
CUT = Partition((Stage(0, 3, (0,)), Stage(3, NUM_LAYERS, (1,))))
PLAN = Plan("even", CUT, "1f1b-flush", 4)
PROGRAM, TIMELINE = predicted_program(PROFILE, local(2), PLAN, 4)
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2}
PYTHON = "import torch\ndef model(width: float = 8, *, deep=True): return torch.nn.Linear(4, 3)\n"
GRAPH = {
    "graph_module": {
        "graph": {"nodes": [1], "tensor_values": {"x": {"sizes": [{"as_int": 4}]}}},
        "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]},
    }
}
GRAPH_TXT = """node1 -- Input0 -- forward_compute_time=0.0, backward_compute_time=0.0, \
activation_size=38535168.0, parameter_size=0.0
node2 -- Conv2d(3, 64, kernel_size=(3, 3), stride=(1, 1), groups=2) -- forward_compute_time=2.5, \
backward_compute_time=1.5, activation_size=[822083584.0; 64.0], parameter_size=7168.0
node3 -- Linear(in_features=512, out_features=10, bias=True) -- forward_compute_time=2.5, \
backward_compute_time=1.5, activation_size=2560.0, parameter_size=20520.0
node4 -- Fused(flops=1.5e9) -- forward_compute_time=1.0, backward_compute_time=1.5, \
activation_size=2560.0, parameter_size=0.0
\tnode1 -- node2
\tnode2 -- node3
\tnode3 -- node4
"""
SAFETENSORS = b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'
MANIFEST = Manifest(1, "1", "0009", "2026-11-20", {}, {"runs": 3}, {}, ())


@dataclass(frozen=True)
class Parser:
    """What reads, and what it can read."""

    reads: Callable[[Any], object]
    seeds: tuple[Any, ...]


def program_file(body: str, name: str = "a/models/model.json") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, body.encode(errors="surrogatepass"))
    return file.getvalue()


def weights_file(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + bytes(8)


def python_with(texts: str) -> object:
    parameters = check("net.py", PYTHON.encode()).parameters
    return checked(parameters, parsed(parameters, {"width": texts, "deep": texts}), "net")


TEXTS = {
    "cluster": Parser(read_cluster, (write_cluster(local(4)),)),
    "profile": Parser(read_profile, (write_profile(PROFILE).decode(),)),
    "graph.txt": Parser(
        lambda t: check_profile(read_profile_file("graph.txt", t)),
        (write_graph(PROFILE), GRAPH_TXT),
    ),
    "program as JSON": Parser(
        lambda t: verify(read_program(t)), (write_program(PROGRAM).decode(),)
    ),
    "program as text": Parser(lambda t: verify(parse_program(t)), (format_program(PROGRAM),)),
    "program as CSV": Parser(
        lambda t: verify(read_csv(t)), ("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n",)
    ),
    "trace": Parser(read_trace, (write_trace(TIMELINE),)),
    "program in any form": Parser(
        lambda t: verify(read_any(_bytes(t))),
        (
            format_program(PROGRAM),
            write_trace(TIMELINE),
            write_program(PROGRAM).decode(),
            "0F0,0B0\n",
        ),
    ),
    "action": Parser(parse_action, ("F0.1@v2", "S0", "R(x)")),
    "cut in a link": Parser(
        lambda t: read_cut(t, CUT, 4), ("3x1-8x1", f"3@0-{NUM_LAYERS}@1", f"{NUM_LAYERS}x2")
    ),
    "pairs in a link": Parser(read_pairs, ("pipedream:gpipe:4,plan-7:2bw:8",)),
    "prices in a link": Parser(lambda t: read_prices(1.0, t), ("H100 4.50, T4 0.35",)),
    "definition in Python": Parser(lambda t: check("net.py", _bytes(t)), (PYTHON,)),
    "config.json": Parser(lambda t: check("config.json", _bytes(t)), (json.dumps(CONFIG),)),
    "description in a .pt2": Parser(
        lambda t: check("net.pt2", program_file(t)), (json.dumps(GRAPH),)
    ),
    "header of .safetensors": Parser(
        lambda t: check("w.safetensors", weights_file(_bytes(t))), (SAFETENSORS.decode(),)
    ),
    "parameters of a definition": Parser(python_with, ("1", "true", "1e9")),
    "name of a file": Parser(lambda t: check(t + ".py", PYTHON.encode()), ("net", "a/b")),
    "spec of a run": Parser(
        lambda t: from_json(TrainSpec, _bytes(t)),
        (to_json(TrainSpec, TrainSpec(1, PLAN)).decode(),),
    ),
    "line of a rank": Parser(
        read_line,
        (
            write_line(Metrics("loss", (1, 2), (0.5, 0.25), (1.0, 2.0), 0)),
            write_line(RankError(0, "OutOfMemory", "no")),
            write_line(Finished(0, 2)),
        ),
    ),
    "manifest of a backup": Parser(
        lambda t: read_manifest(_bytes(t)), (write_manifest(MANIFEST).decode(),)
    ),
    "cookie of a sign-in": Parser(flow_of, (PendingSignIn("a", "b", "c", "/runs").text(),)),
}
FILES = {
    "net.pt2": Parser(lambda d: check("net.pt2", d), (program_file(json.dumps(GRAPH)),)),
    "w.safetensors": Parser(lambda d: check("w.safetensors", d), (weights_file(SAFETENSORS),)),
    "net.py": Parser(lambda d: check("net.py", d), (PYTHON.encode(),)),
    "config.json": Parser(lambda d: check("config.json", d), (json.dumps(CONFIG).encode(),)),
    "profile": Parser(read_profile, (write_profile(PROFILE),)),
    "trace": Parser(read_trace, (write_trace(TIMELINE).encode(),)),
}
QUICK = settings(max_examples=60, database=None, suppress_health_check=list(HealthCheck))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_brings_out_another_error(name: str) -> None:
    parser = TEXTS[name]
    assert parser.seeds

    @QUICK
    @given(mutated(parser.seeds))
    def one(text: str) -> None:
        with suppress(StageflowError):
            parser.reads(text)

    one()


@pytest.mark.parametrize("name", FILES)
def test_no_bytes_bring_out_another_error(name: str) -> None:
    parser = FILES[name]

    @QUICK
    @given(mutated_bytes(parser.seeds))
    def one(data: bytes) -> None:
        with suppress(StageflowError):
            parser.reads(data)

    one()
