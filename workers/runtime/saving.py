"""The trained model as safetensors: a file per stage, then one with the model's own names."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from backend.runs.events import Artifact
from workers.runtime.reporter import Reporter
from workers.runtime.seated import Seated

MODEL_FILE = "model.safetensors"


def save(seated: Seated, folder: Path, reporter: Reporter) -> None:
    """Every stage's first replica writes its weights (with lanes: the reference); rank 0 then
    joins them.

    All ranks call it; those of one host share the job's folder, and those of several send
    rank 0 what they wrote.
    """
    own: dict[str, Tensor] = {}
    for stage in seated.leads if seated.seat.lane == 0 else ():
        path, state = _stage_file(folder, stage), _stage_state(seated, stage)
        save_file(state, path)
        reporter(Artifact(path.name, str(path)))
        own |= state
    seated.world.barrier()
    parts = seated.world.gathered(own) if seated.world.hosts > 1 else []
    if seated.world.rank == 0:
        path = folder / MODEL_FILE
        found = {name: tensor for part in parts for name, tensor in part.items()}
        save_file(_joined(seated, found or _written(seated, folder)), path)
        reporter(Artifact(path.name, str(path)))


def _stage_file(folder: Path, stage: int) -> Path:
    return folder / f"stage-{stage}.safetensors"


def _stage_state(seated: Seated, number: int) -> dict[str, Tensor]:
    """What the stage holds of the model's state: parameters and persistent buffers."""
    module, trained = seated.stages[number].module, seated.weights[number].evaluated
    state = dict(module.named_parameters()) | dict(module.named_buffers()) | trained
    wanted = seated.layered.model.state_dict().keys()
    return {name: _plain(tensor) for name, tensor in state.items() if name in wanted}


def _written(seated: Seated, folder: Path) -> dict[str, Tensor]:
    """All stages' tensors as their files have them."""
    files = (_stage_file(folder, stage) for stage in range(len(seated.layers)))
    return {name: tensor for file in files for name, tensor in load_file(file).items()}


def _joined(seated: Seated, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """All stages' tensors under every name that the model's own `state_dict` has.

    A tensor with several names (tied weights) is written under each; a parameter that no
    layer uses keeps its first value.
    """
    initial = seated.layered.model.state_dict()
    saved = {
        name: next((found[n] for n in seated.ties[name] if n in found), initial[name])
        for name in initial
    }
    return {name: tensor.detach().cpu().clone() for name, tensor in saved.items()}


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True).contiguous(memory_format=torch.contiguous_format)
