"""Data whose inputs have other shapes than the model's example, told where the model raises on
them: many models take other shapes (a longer text, a larger picture), so none is refused before.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat

from backend.errors import StageflowError, first_line
from workers.data.errors import DataFailed
from workers.definitions.definition import LoadedDefinition
from workers.definitions.errors import DefinitionFailed, UserCodeFailed
from workers.definitions.samples import Samples, tensors

ADVICE = "Choose the columns that are the model's inputs, or another model."


@contextmanager
def told_beside_example(definition: LoadedDefinition, inputs: Samples) -> Iterator[None]:
    """Run what gives `inputs`, of one microbatch, to the model. Where it raises, and a sample of
    the definition's example has another shape, raise an error that tells both."""
    try:
        yield
    except UserCodeFailed as error:
        told = _differing(definition, inputs)
        raise type(error)(f"{str(error).rstrip('.')}{told}", error.advice, error.detail) from error
    except StageflowError:
        raise
    except Exception as error:
        if told := _differing(definition, inputs):
            reason = first_line(error).rstrip(".")
            raise DataFailed(f"the model raised on the data: {reason}{told}", ADVICE) from error
        raise


def _differing(definition: LoadedDefinition, inputs: Samples) -> str:
    """Both shapes in a sentence; "" where they are the same, or there is no example."""
    given, wanted = _shapes(inputs), _example_shapes(definition)
    if wanted in (None, given):
        return ""
    return f". A sample of the data has {given}; one of the model's example has {wanted}"


def _example_shapes(definition: LoadedDefinition) -> str | None:
    """None where there is no example."""
    if not definition.has_example:
        return None
    try:
        return _shapes(definition.example(1)[0])
    except DefinitionFailed:
        return None


def _shapes(inputs: Samples) -> str:
    """The shape of each input, without the samples: "x (3), kinds (2)"."""
    names = [f"{name} " for name in inputs] if isinstance(inputs, dict) else repeat("")
    return ", ".join(
        f"{name}{shape_text(tensor.shape[1:])}"
        for name, tensor in zip(names, tensors(inputs), strict=False)
    )


def shape_text(shape: Sequence[int]) -> str:
    """ "(3x32x32)"; "(a single one)" for a number."""
    return f"({'x'.join(map(str, shape)) or 'a single one'})"
