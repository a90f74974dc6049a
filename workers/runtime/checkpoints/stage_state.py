"""One stage's part of a checkpoint: tensors under "kind/name", written and found again."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from backend.errors import StageflowError
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.runs.request.spec import TrainSpec
from workers.runtime.rank import Rank
from workers.runtime.samples.segments import round_size
from workers.runtime.state.loss_scale import LossScale

WEIGHT, BUFFER, REFERENCE, SCALE = "weight", "buffer", "reference", "scale"
OPTIMIZER_STATE = ("velocity", "mean", "square")
"""The kinds of `Optimizer.state`."""


class CheckpointDoesNotFit(StageflowError):
    """A checkpoint lacks something that the model of this run has."""

    advice = "It was made of another model, or with other parameters: start from the beginning."


def copy_of(rank: Rank, stage: int) -> dict[str, Tensor]:
    """Copies, on the CPU, of all that the stage needs to go on: the newest weights (the masters,
    where there are some), the state of the optimizer, buffers, and with pipelines the reference."""
    weights = rank.state.weights[stage]
    found = {
        WEIGHT: weights.exact,
        BUFFER: rank.stages.buffers(stage),
        REFERENCE: weights.reference or {},
        SCALE: _scale(rank.state.loss_scale),
    }
    for kind, tensors in weights.optimizer_state.items():
        found[kind] = dict(zip(weights.newest, tensors, strict=True))
    return {
        f"{kind}/{name}": tensor.detach().to("cpu", copy=True).contiguous()
        for kind, named in found.items()
        for name, tensor in named.items()
    }


def resume(
    rank: Rank, spec: TrainSpec, shape: Shape, folder: Path, epoch: int, samples: int
) -> int:
    """Put the checkpoint in `folder` into this rank's stages, however it was cut into stages and
    pipelines and in whichever precision its state was kept; the microbatches of `epoch` that are
    done. Of its `samples` those that fill no whole round of this plan are trained on again. `shape`
    is that of a whole epoch. Raises `CheckpointDoesNotFit`."""
    unit = round_size(shape.replicas, shape.batch, shape.num_pipelines)
    first = min(samples // (spec.plan.microbatch * unit) * unit, shape.num_microbatches)
    per_epoch = len(schedule(spec.plan.schedule).updates(rank.coordinates))
    updates = round(per_epoch * (epoch + first / shape.num_microbatches))
    with ExitStack() as files:
        kept = _Kept(folder, rank, shape.num_pipelines, files)
        if rank.state.loss_scale is not None:
            _fill_scale(rank.state.loss_scale, kept)
        for stage in rank.stages.modules:
            _fill(rank, stage, kept, updates)
    return first


def _scale(scale: LossScale | None) -> dict[str, Tensor]:
    """The factor of the loss in float16."""
    if scale is None:
        return {}
    kept = {"value": scale.value, "quiet": scale.quiet, "left_out": scale.left_out}
    return {name: torch.tensor(number) for name, number in kept.items()}


def _fill_scale(scale: LossScale, kept: "_Kept") -> None:
    if kept.has(SCALE, "value"):
        scale.value = kept.needed(SCALE, "value").item()
        scale.quiet = int(kept.needed(SCALE, "quiet").item())
        if kept.has(SCALE, "left_out"):  # files of before have none
            scale.left_out = int(kept.needed(SCALE, "left_out").item())


def _fill(rank: Rank, stage: int, kept: "_Kept", updates: int) -> None:
    weights, scale = rank.state.weights[stage], rank.state.loss_scale
    names = list(weights.newest)
    optimizer_state = {
        kind: [kept.found(kind, name, tensor) for name, tensor in weights.exact.items()]
        for kind in OPTIMIZER_STATE
        if any(kept.has(kind, name) for name in names)
    }
    found = {name: kept.needed(WEIGHT, name) for name in names}
    weights.restore(found, optimizer_state, updates, scale.left_out if scale else 0)
    if weights.reference is not None:
        weights.reference = {
            name: kept.needed(REFERENCE, name).to(exact) for name, exact in weights.exact.items()
        }
    with torch.no_grad():
        for name, buffer in rank.stages.buffers(stage).items():
            buffer.copy_(kept.needed(BUFFER, name))


class _Kept:
    """The files of a checkpoint, as one pipeline reads them: its own where there are as many
    pipelines as before; otherwise the first one's, with the reference for weights."""

    def __init__(self, folder: Path, rank: Rank, num_pipelines: int, files: ExitStack) -> None:
        self._tied, self._device = rank.stages.tied, rank.world.device
        opened = [
            files.enter_context(safe_open(path, framework="pt"))
            for path in sorted(folder.glob("*.safetensors"))
        ]
        before = {int(file.metadata()["lane"]) for file in opened}
        self._is_same = len(before) == num_pipelines
        pipeline = rank.coordinates.pipeline if self._is_same else 0
        self._files = _by_key(file for file in opened if int(file.metadata()["lane"]) == pipeline)

    def has(self, kind: str, name: str) -> bool:
        return self._key(kind, name) is not None

    def found(self, kind: str, name: str, like: Tensor) -> Tensor:
        """The tensor, in the bits of `like` at least; zeros where there is none."""
        key = self._key(kind, name)
        found = torch.zeros_like(like) if key is None else self._read(key)
        return found.to(torch.promote_types(found.dtype, like.dtype))

    def needed(self, kind: str, name: str) -> Tensor:
        """The tensor; raises `CheckpointDoesNotFit` where there is none."""
        for key in (self._key(other, name) for other in self._instead(kind)):
            if key is not None:
                return self._read(key)
        raise CheckpointDoesNotFit(f"the checkpoint has no {kind} {name!r}")

    def _instead(self, kind: str) -> tuple[str, ...]:
        if kind == REFERENCE or (kind == WEIGHT and not self._is_same):
            return (REFERENCE, WEIGHT)
        return (kind,)

    def _key(self, kind: str, name: str) -> str | None:
        """The key under this name, or under one that is tied to it."""
        keys = (f"{kind}/{other}" for other in (name, *self._tied.get(name, ())))
        return next((key for key in keys if key in self._files), None)

    def _read(self, key: str) -> Tensor:
        tensor: Tensor = self._files[key].get_tensor(key)
        return tensor.to(self._device)


def _by_key(files: Iterable[Any]) -> Mapping[str, Any]:
    return {key: file for file in files for key in file.keys()}  # noqa: SIM118 (no mapping)
