"""The trained model as safetensors: a file per stage, then one with the model's own names."""

from collections.abc import Iterable
from pathlib import Path

from torch import Tensor

from backend.runs.events import Artifact
from backend.runs.history.records import TRAINED_MODEL
from workers.runtime.checkpoints.tensor_files import join, names_in, write
from workers.runtime.compute.stages import Stages
from workers.runtime.messages.groups import led_stages
from workers.runtime.rank import Rank
from workers.runtime.reports.reporter import Reporter


def save(rank: Rank, folder: Path, reporter: Reporter) -> None:
    """Every stage's first replica writes its weights (with pipelines: the reference); rank 0 then
    joins the files, which no rank ever holds together.

    All ranks call it; those of one host share the job's folder, and those of several send
    rank 0 what they wrote.
    """
    own: dict[str, Tensor] = {}
    for stage in led_stages(rank.coordinates) if rank.coordinates.pipeline == 0 else ():
        path, state = _stage_file(folder, stage), _stage_state(rank, stage)
        write(path, state, {})
        reporter(Artifact(path.name, str(path)))
        if rank.world.hosts > 1:
            own |= {name: tensor.cpu() for name, tensor in state.items()}
    rank.world.barrier()
    parts = rank.world.gathered(own) if rank.world.hosts > 1 else []
    if rank.world.rank == 0:
        files = [_stage_file(folder, stage) for stage in range(len(rank.stages.bounds))]
        if parts:
            files = [folder / f".part-{number}" for number in range(len(parts))]
            for file, part in zip(files, parts, strict=True):
                write(file, part, {})
        path = folder / TRAINED_MODEL
        _join(rank.stages, files, path)
        for file in files if parts else ():
            file.unlink()
        reporter(Artifact(path.name, str(path)))


def _stage_file(folder: Path, stage: int) -> Path:
    return folder / f"stage-{stage}.safetensors"


def _stage_state(rank: Rank, stage: int) -> dict[str, Tensor]:
    """What the stage holds of the model's state: parameters and persistent buffers."""
    parameters = dict(rank.stages.modules[stage].module.named_parameters())
    state = parameters | rank.stages.buffers(stage) | rank.state.weights[stage].evaluated
    wanted = rank.stages.layered.model.state_dict().keys()
    return {name: tensor.detach() for name, tensor in state.items() if name in wanted}


def _join(stages: Stages, files: Iterable[Path], path: Path) -> None:
    """All stages' tensors under every name that the model's own `state_dict` has.

    A tensor with several names (tied weights) is written under each; a parameter that no
    layer uses keeps its first value.
    """
    found = {name: (file, name) for file in files for name in names_in(file)}
    initial = stages.layered.model.state_dict()
    names = {name: next((n for n in stages.tied[name] if n in found), "") for name in initial}
    unread = {name: initial[name] for name, known in names.items() if not known}
    rest = path.with_name(".unread")
    write(rest, unread, {})
    join(path, {name: found.get(known, (rest, name)) for name, known in names.items()})
    rest.unlink()
