"""A definition's file to a loaded definition, whatever its form."""

from pathlib import Path

from workers.definitions.definition import LoadedDefinition, Loss, Values, cross_entropy
from workers.definitions.errors import DefinitionFailed
from workers.definitions.forms.huggingface import load_config
from workers.definitions.forms.program import load_program
from workers.definitions.forms.python import load_python
from workers.definitions.module_state.module_state import MODULE_NAME
from workers.definitions.samples import Batch

__all__ = ["MODULE_NAME", "Batch", "LoadedDefinition", "Loss", "cross_entropy", "load"]


def load(file: Path, parameters: Values | None = None) -> LoadedDefinition:
    """Load `file` into this process, which runs its code; raises `DefinitionFailed`.

    .py: a factory; .json: a Hugging Face config; .pt2: a program of torch.export.
    """
    file, values = file.resolve(), parameters or {}
    match file.suffix:
        case ".py":
            return load_python(file, values)
        case ".json":
            return load_config(file, values)
        case ".pt2":
            if values:
                raise DefinitionFailed(f"{file.name}: a program has no parameters")
            return load_program(file)
        case _:
            raise DefinitionFailed(
                f"{file.name} has no known form of a definition",
                "Give a .py file, a Hugging Face config.json or a .pt2 program.",
            )
