"""What can be said of each form of a definition's file without running it or torch.

.py           a Python file with a factory
.json         a Hugging Face config
.pt2          a program of torch.export: its description is JSON; the rest is not opened
.safetensors  weights for another definition: a JSON header, then plain numbers
"""

import io
import json
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from backend.definitions.definition import InvalidDefinition
from backend.definitions.parameters import Parameter
from backend.units import bytes_text

Form = Literal["python", "huggingface", "program", "weights"]
FORMS: dict[str, Form] = {
    ".py": "python",
    ".json": "huggingface",
    ".pt2": "program",
    ".safetensors": "weights",
}
MEBIBYTE = 1 << 20
MAX_BYTES: dict[Form, int] = {
    "python": MEBIBYTE,
    "huggingface": MEBIBYTE,
    "program": 256 * MEBIBYTE,
    "weights": 256 * MEBIBYTE,
}
SHOWN = (
    *("hidden_size", "n_embd", "d_model", "num_hidden_layers", "n_layer", "num_layers"),
    *("num_attention_heads", "n_head", "num_heads", "vocab_size", "num_local_experts"),
)
"""Fields of a config that people ask for first."""
MAX_DESCRIPTION = 64 * MEBIBYTE
"""Most bytes of JSON that are unpacked from a program or a header of weights."""
UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError),
    *(KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError),
)
"""What zipfile and a description of another shape raise: damaged, encrypted, of another make."""
MAX_FILENAME = 200
"""Bytes: a name on a disk may have 255, and a copy in progress adds some."""
TASKS = (
    *("causal-lm", "seq2seq-lm", "masked-lm"),
    *("sequence-classification", "token-classification", "question-answering"),
    *("image-classification", "image-text", "image-to-text"),
    *("audio-classification", "audio-ctc", "audio-to-text"),
)
ENDINGS = {
    "ForCausalLM": "causal-lm",
    "LMHeadModel": "causal-lm",
    "ForConditionalGeneration": "seq2seq-lm",
    "ForMaskedLM": "masked-lm",
    "ForPreTraining": "masked-lm",
    "ForSequenceClassification": "sequence-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForImageClassification": "image-classification",
    "ForAudioClassification": "audio-classification",
    "ForCTC": "audio-ctc",
}
"""What the end of the first of a config's `architectures` says of its task."""
HEARING = {"seq2seq-lm": "audio-to-text", "sequence-classification": "audio-classification"}
"""The same endings where the model hears (`AUDIO`)."""
AUDIO = ("conv_stride", "num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim")
SEEING = {"seq2seq-lm": "image-to-text", "": "image-text"}
"""The same where it sees and reads."""


@dataclass(frozen=True, slots=True)
class Description:
    """`task` for people ("" = unknown); `facts` are (name, value) in the order to show them."""

    form: Form
    task: str = ""
    parameters: tuple[Parameter, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def form_of(filename: str) -> Form:
    """By the file's ending; raises `InvalidDefinition` naming the known ones, or on a name that
    no disk would take."""
    name = PurePath(filename).name
    if not name.isprintable() or len(name.encode(errors="replace")) > MAX_FILENAME:
        raise InvalidDefinition(
            f"{filename[:60]!r} cannot name a file",
            f"Use at most {MAX_FILENAME} printable characters.",
        )
    suffix = PurePath(name).suffix.lower()
    if suffix not in FORMS:
        raise InvalidDefinition(
            f"{filename} has no known form of a definition",
            "Give a Python file (.py), a Hugging Face config.json, a torch.export program (.pt2) "
            "or weights (.safetensors).",
        )
    return FORMS[suffix]


def describe_config(filename: str, data: bytes) -> Description:
    """A Hugging Face config; raises `InvalidDefinition` where it is none."""
    fields = _json(filename, data)
    kind = fields.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise InvalidDefinition(
            f"{filename} has no model_type", "Upload the config.json of a Hugging Face model."
        )
    task = task_of(fields)
    tied = fields.get("tie_word_embeddings")
    parameters = [
        Parameter("task", "str", task, TASKS if task else ("", *TASKS)),
        Parameter("length", "int", 0),
    ]
    if isinstance(tied, bool):
        parameters.append(Parameter("tied", "bool", tied))
    if task in ("", "causal-lm"):
        parameters.append(Parameter("apart", "bool", False))
    parameters += [
        Parameter("lora", "int", 0),
        Parameter("lora_alpha", "float", 0.0),
        Parameter("lora_layers", "str", ""),
    ]
    facts = [("model type", kind), *((n, str(fields[n])) for n in SHOWN if n in fields)]
    return Description("huggingface", task, tuple(parameters), tuple(facts))


def task_of(fields: dict[str, Any]) -> str:
    """By the first of `architectures`; "" where there is none or an unknown one."""
    names = fields.get("architectures")
    first = str(names[0]) if isinstance(names, list) and names else ""
    task = next((task for ending, task in ENDINGS.items() if first.endswith(ending)), "")
    if any(name in fields for name in AUDIO):
        return HEARING.get(task, task)
    return SEEING.get(task, task) if first and "vision_config" in fields else task


def describe_program(filename: str, data: bytes) -> Description:
    """A program's inputs and operations, from `models/model.json` alone."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            body = _description(filename, archive)
        graph, signature = body["graph_module"]["graph"], body["graph_module"]["signature"]
        specs = signature["input_specs"]
        given = [spec["user_input"]["arg"] for spec in specs if "user_input" in spec]
        inputs = [_tensor(graph, arg["as_tensor"]["name"]) for arg in given if "as_tensor" in arg]
        weights = sum("parameter" in spec for spec in specs)
        operations = len(graph["nodes"])
    except UNREADABLE as fault:
        raise InvalidDefinition(
            f"{filename} is not a program of torch.export: {str(fault)[:200]}",
            "Save it with torch.export.save(torch.export.export(model, inputs), file).",
        ) from None
    facts = [("operations", f"{operations:,}"), ("weights", f"{weights:,}")]
    facts += [(f"input {number}", text) for number, text in enumerate(inputs)]
    return Description("program", facts=tuple(facts))


def describe_weights(filename: str, data: bytes) -> Description:
    """The tensors of a safetensors file, from its header."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, MAX_DESCRIPTION):
        raise InvalidDefinition(f"{filename} is not a safetensors file", "Its header is missing.")
    header = _json(filename, data[8 : 8 + size])
    tensors = {name: each for name, each in header.items() if name != "__metadata__"}
    facts = (("tensors", f"{len(tensors):,}"), ("bytes", f"{len(data) - 8 - size:,}"))
    return Description("weights", facts=facts)


def _description(filename: str, archive: zipfile.ZipFile) -> Any:
    names = [info for info in archive.infolist() if info.filename.endswith("models/model.json")]
    if not names:
        raise KeyError("it has no models/model.json")
    total = sum(info.file_size for info in archive.infolist())
    if names[0].file_size > MAX_DESCRIPTION or total > 4 * MAX_BYTES["program"]:
        raise InvalidDefinition(
            f"{filename} unpacks to {bytes_text(total)}, of which "
            f"{bytes_text(names[0].file_size)} describe it",
            f"At most {bytes_text(MAX_DESCRIPTION)} may describe it.",
        )
    with archive.open(names[0]) as file:
        return json.loads(file.read(MAX_DESCRIPTION))


def _tensor(graph: Any, name: str) -> str:
    sizes = [str(size.get("as_int", "any")) for size in graph["tensor_values"][name]["sizes"]]
    return " x ".join(sizes) or "a number"


def _json(filename: str, data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as fault:
        raise InvalidDefinition(
            f"{filename}: not JSON: {fault}", "Upload the original file."
        ) from None
    if not isinstance(fields, dict):
        raise InvalidDefinition(f"{filename} is not a JSON object", "Upload the original file.")
    return fields
