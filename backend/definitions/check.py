"""What can be said about a definition file without running it."""

from backend.definitions.definition import InvalidDefinition
from backend.definitions.forms import (
    MAX_BYTES,
    Description,
    describe_config,
    describe_program,
    describe_weights,
    form_of,
)
from backend.definitions.python_file import CONTRACT, parameters_of
from backend.units import bytes_text


def check(filename: str, data: bytes) -> Description:
    """What the file is; raises `InvalidDefinition` where it can be no definition.

    The text is parsed, never run.
    """
    form = form_of(filename)
    if not data.strip():
        raise InvalidDefinition(f"{filename} is empty", CONTRACT)
    if len(data) > MAX_BYTES[form]:
        raise InvalidDefinition(
            f"{filename} is larger than {bytes_text(MAX_BYTES[form])}, the most of this form",
            "Keep weights and data out of the definition's file.",
        )
    match form:
        case "python":
            return Description("python", parameters=parameters_of(filename, data))
        case "huggingface":
            return describe_config(filename, data)
        case "program":
            return describe_program(filename, data)
        case "weights":
            return describe_weights(filename, data)
