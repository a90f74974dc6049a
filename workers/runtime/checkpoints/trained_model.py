"""The trained model as safetensors: a file per stage with their index, and one that holds all.

The stages' files with `model.safetensors.index.json` are shards as Hugging Face has them: with the
config that a model came from, `from_pretrained` opens the folder.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from torch import Tensor

from backend.runs.events import Artifact
from backend.runs.history.records import TRAINED_MODEL
from workers.definitions.weight_files import INDEX
from workers.runtime.checkpoints.tensor_files import join, names_in, write
from workers.runtime.compute.stages import Stages
from workers.runtime.messages.groups import led_stages
from workers.runtime.rank import Rank
from workers.runtime.reports.reporter import Reporter

UNREAD = "unread.safetensors"
"""Beside the stages' files: what the model keeps and no stage reads."""


def save(rank: Rank, companions: Mapping[str, str], folder: Path, reporter: Reporter) -> None:
    """Every stage's first replica writes its weights (with pipelines: the reference); rank 0 then
    joins the files, which no rank ever holds together, and writes the `companions` beside them.

    All ranks call it; those of one host share the job's folder, and those of several send
    rank 0 what they wrote. A file that is reported may be moved away, so that the stages' files are
    reported after the join.
    """
    own: dict[str, Tensor] = {}
    shards: dict[str, tuple[str, int]] = {}
    for stage in led_stages(rank.coordinates) if rank.coordinates.pipeline == 0 else ():
        path, state = _stage_file(folder, stage), _stage_state(rank, stage)
        write(path, state, {})
        shards |= {name: (path.name, tensor.nbytes) for name, tensor in state.items()}
        if rank.world.hosts > 1:
            own |= {name: tensor.cpu() for name, tensor in state.items()}
    rank.world.barrier()
    parts = rank.world.gathered(own) if rank.world.hosts > 1 else []
    places = rank.world.gathered(shards)
    if rank.world.rank == 0:
        files = [_stage_file(folder, stage) for stage in range(len(rank.stages.bounds))]
        if parts:
            files = [folder / f".part-{number}" for number in range(len(parts))]
            for file, part in zip(files, parts, strict=True):
                write(file, part, {})
        path = folder / TRAINED_MODEL
        unread = _join(rank.stages, files, path)
        for file in files if parts else ():
            file.unlink()
        texts = {INDEX: _index([*places, unread]), **companions}
        for name, text in texts.items():
            (folder / name).write_text(text)
        for name in (path.name, *texts, *({file for file, _ in unread.values()})):
            reporter(Artifact(name, str(folder / name)))
    rank.world.barrier()
    for name in dict.fromkeys(file for file, _ in shards.values()):
        reporter(Artifact(name, str(folder / name)))


def _index(shards: Iterable[Mapping[str, tuple[str, int]]]) -> str:
    """Which file holds each tensor: by name its file and bytes."""
    every = {name: place for part in shards for name, place in part.items()}
    size = sum(num_bytes for _, num_bytes in every.values())
    files = {name: file for name, (file, _) in sorted(every.items())}
    return json.dumps({"metadata": {"total_size": size}, "weight_map": files}, indent=2)


def _stage_file(folder: Path, stage: int) -> Path:
    return folder / f"stage-{stage}.safetensors"


def _stage_state(rank: Rank, stage: int) -> dict[str, Tensor]:
    """What the stage holds of the model's state: parameters and persistent buffers."""
    parameters = dict(rank.stages.modules[stage].module.named_parameters())
    state = parameters | rank.stages.buffers(stage) | rank.state.weights[stage].evaluated
    wanted = rank.stages.layered.model.state_dict().keys()
    return {name: tensor.detach() for name, tensor in state.items() if name in wanted}


def _join(stages: Stages, files: Iterable[Path], path: Path) -> dict[str, tuple[str, int]]:
    """All stages' tensors under every name that the model's own `state_dict` has; by name the
    file and bytes of those that no stage has.

    A tensor with several names (tied weights) is written under each; a parameter that no
    layer uses keeps its first value.
    """
    found = {name: (file, name) for file in files for name in names_in(file)}
    initial = stages.layered.model.state_dict()
    names = {name: next((n for n in stages.tied[name] if n in found), "") for name in initial}
    unread = {name: initial[name] for name, known in names.items() if not known}
    rest = path.with_name(UNREAD)
    write(rest, unread, {})
    join(path, {name: found.get(known, (rest, name)) for name, known in names.items()})
    if not unread:
        rest.unlink()
    return {name: (rest.name, tensor.nbytes) for name, tensor in unread.items()}
