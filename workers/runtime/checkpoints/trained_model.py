"""The trained model as safetensors: a file per stage, then one with the model's own names."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from backend.runs.events import Artifact
from workers.runtime.compute.stages import Stages
from workers.runtime.messages.groups import led_stages
from workers.runtime.rank import Rank
from workers.runtime.reports.reporter import Reporter

MODEL_FILE = "model.safetensors"


def save(rank: Rank, folder: Path, reporter: Reporter) -> None:
    """Every stage's first replica writes its weights (with pipelines: the reference); rank 0 then
    joins them.

    All ranks call it; those of one host share the job's folder, and those of several send
    rank 0 what they wrote.
    """
    own: dict[str, Tensor] = {}
    for stage in led_stages(rank.coordinates) if rank.coordinates.pipeline == 0 else ():
        path, state = _stage_file(folder, stage), _stage_state(rank, stage)
        save_file(state, path)
        reporter(Artifact(path.name, str(path)))
        own |= state
    rank.world.barrier()
    parts = rank.world.gathered(own) if rank.world.hosts > 1 else []
    if rank.world.rank == 0:
        path = folder / MODEL_FILE
        found = {name: tensor for part in parts for name, tensor in part.items()}
        save_file(_joined(rank.stages, found or _written(len(rank.stages.bounds), folder)), path)
        reporter(Artifact(path.name, str(path)))


def _stage_file(folder: Path, stage: int) -> Path:
    return folder / f"stage-{stage}.safetensors"


def _stage_state(rank: Rank, stage: int) -> dict[str, Tensor]:
    """What the stage holds of the model's state: parameters and persistent buffers."""
    parameters = dict(rank.stages.modules[stage].module.named_parameters())
    state = parameters | rank.stages.buffers(stage) | rank.state.weights[stage].evaluated
    wanted = rank.stages.layered.model.state_dict().keys()
    return {name: _plain(tensor) for name, tensor in state.items() if name in wanted}


def _written(num_stages: int, folder: Path) -> dict[str, Tensor]:
    """All stages' tensors as their files have them."""
    files = (_stage_file(folder, stage) for stage in range(num_stages))
    return {name: tensor for file in files for name, tensor in load_file(file).items()}


def _joined(stages: Stages, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """All stages' tensors under every name that the model's own `state_dict` has.

    A tensor with several names (tied weights) is written under each; a parameter that no
    layer uses keeps its first value.
    """
    initial = stages.layered.model.state_dict()
    saved = {
        name: next((found[n] for n in stages.tied[name] if n in found), initial[name])
        for name in initial
    }
    return {name: tensor.detach().cpu().clone() for name, tensor in saved.items()}


def _plain(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True).contiguous(memory_format=torch.contiguous_format)
