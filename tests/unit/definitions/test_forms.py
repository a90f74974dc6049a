"""What is said of each form without running it, and how each is refused."""

import io
import json
import struct
import zipfile

import pytest

from backend.definitions.check import check
from backend.definitions.definition import InvalidDefinition
from backend.definitions.forms import form_of


def config(**fields) -> bytes:
    return json.dumps(
        {"model_type": "llama", "architectures": ["LlamaForCausalLM"]} | fields
    ).encode()


def program(body: object, name: str = "net/models/model.json", more: int = 0) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, json.dumps(body))
        archive.writestr("net/data/weights/weight_0", b"\0" * more)
    return file.getvalue()


BODY = {
    "graph_module": {
        "graph": {
            "nodes": [1, 2, 3],
            "tensor_values": {"x": {"sizes": [{"as_expr": {}}, {"as_int": 4}]}},
        },
        "signature": {
            "input_specs": [
                {"parameter": {"parameter_name": "a.weight"}},
                {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
            ]
        },
    }
}


def weights(header: dict, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("net.py", "python"),
        ("config.json", "huggingface"),
        ("net.PT2", "program"),
        ("w.safetensors", "weights"),
    ],
)
def test_the_ending_says_the_form(name: str, form: str) -> None:
    assert form_of(name) == form


@pytest.mark.parametrize("name", ["net.onnx", "net", "net.pkl", "net.pt"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(InvalidDefinition, match="no known form of a definition") as raised:
        form_of(name)
    assert ".pt2" in raised.value.advice


def test_a_python_file_offers_its_parameters() -> None:
    found = check("net.py", b"def model(width: int = 4): ...")
    assert [(p.name, p.kind, p.default) for p in found.parameters] == [("width", "int", 4)]


LORA = ["lora", "lora_alpha", "lora_layers"]


def test_a_config_says_its_task_and_sizes() -> None:
    found = check("config.json", config(hidden_size=64, tie_word_embeddings=True))
    assert found.task == "causal-lm"
    assert ("model type", "llama") in found.facts
    assert ("hidden_size", "64") in found.facts
    assert [p.name for p in found.parameters] == ["task", "length", "tied", "apart", *LORA]
    assert check("config.json", config(architectures=None)).task == ""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"a": 1}', "no model_type"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_configs_that_are_none(data: bytes, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        check("config.json", data)


def test_a_program_tells_its_inputs() -> None:
    found = check("net.pt2", program(BODY, more=100))
    assert found.facts == (("operations", "3"), ("weights", "1"), ("input 0", "any x 4"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK but not a zip", "not a program of torch.export"),
        (program(BODY, name="net/other.json"), "no models/model.json"),
        (program({"graph_module": 3}), "not a program of torch.export"),
    ],
)
def test_programs_that_are_none(data: bytes, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        check("net.pt2", data)


def test_a_program_that_unpacks_to_gigabytes_is_refused_unopened() -> None:
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("net/models/model.json", "w") as part,
    ):
        for _ in range(80):
            part.write(b" " * (1 << 20))
    assert len(file.getvalue()) < 1 << 20
    with pytest.raises(InvalidDefinition, match=r"unpacks to 80\.0 MiB"):
        check("net.pt2", file.getvalue())


def test_weights_tell_how_many_they_are() -> None:
    header = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {}}
    found = check("w.safetensors", weights(header, b"\1" * 8))
    assert found.facts == (("tensors", "1"), ("bytes", "8"))


@pytest.mark.parametrize("data", [b"short", b"\xff" * 40])
def test_weights_that_are_none(data: bytes) -> None:
    with pytest.raises(InvalidDefinition, match="not a safetensors file"):
        check("w.safetensors", data)
