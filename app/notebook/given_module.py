"""A module of the notebook as a definition's file: pickled beside it, with what it is called on."""

from pathlib import Path
from typing import Any

from backend.errors import InvalidInput

SOURCE = '''"""A module that a notebook gave to stageflow.profile."""

import pickle
from pathlib import Path

import torch

GIVEN = Path(__file__).with_name("given.pickle")


def read():
    return pickle.loads(GIVEN.read_bytes())


def model():
    return read()["module"]


def example(batch):
    inputs, targets = read()["example"]
    return taken(inputs, batch), taken(targets, batch)


def taken(samples, batch):
    """So many samples: the given ones over and over."""
    if isinstance(samples, torch.Tensor):
        return samples[torch.arange(batch) % len(samples)].clone()
    if isinstance(samples, dict):
        return {name: taken(each, batch) for name, each in samples.items()}
    return tuple(taken(each, batch) for each in samples)
'''
LOSS = """

def loss(output, target):
    return read_loss(output, target)


read_loss = read()["loss"]
"""


def is_module(given: object) -> bool:
    """Whether it is a torch module; asks the class's ancestors, so that torch is not imported."""
    return any(
        (each.__module__, each.__name__) == ("torch.nn.modules.module", "Module")
        for each in type(given).__mro__
    )


def write_definition(folder: Path, module: Any, example: Any, loss: Any) -> Path:
    """The definition's file. Raises `InvalidInput` where there is no example or the module cannot
    be pickled."""
    if example is None:
        raise InvalidInput(
            "a module is profiled on samples, and none were given",
            "Give a pair of tensors: stageflow.profile(model, example=(inputs, targets)).",
        )
    try:
        import cloudpickle  # pickles what the notebook itself defines
    except ImportError:
        raise InvalidInput(
            "a module of the notebook is passed on by cloudpickle, which is not installed",
            "pip install 'stageflow[notebook]', or give the path of a definition's file.",
        ) from None
    given = {"module": module, "example": example, "loss": loss}
    try:
        data = cloudpickle.dumps(given)
    except Exception as fault:
        raise InvalidInput(
            f"the module cannot be passed to the profiler: {fault}"[:300],
            "Give the path of a definition's file.",
        ) from fault
    (folder / "given.pickle").write_bytes(data)
    path = folder / "definition.py"
    path.write_text(SOURCE + (LOSS if loss is not None else ""))
    return path
