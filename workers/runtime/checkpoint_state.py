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
from backend.runs.spec import TrainSpec
from workers.runtime.seated import Seated

WEIGHT, BUFFER, REFERENCE, SCALE = "weight", "buffer", "reference", "scale"
REMEMBERED = ("velocity", "mean", "square")
"""What update rules carry on (`Rule.memory`)."""


class CheckpointDoesNotFit(StageflowError):
    """A checkpoint lacks something that the model of this run has."""

    advice = "It was made of another model, or with other parameters: start from the beginning."


def state_of(seated: Seated, stage: int) -> dict[str, Tensor]:
    """Copies, on the CPU, of all that the stage needs to go on: the newest weights, what the
    update rule carries on, buffers, and with lanes the reference."""
    weights, module = seated.weights[stage], seated.stages[stage].module
    found = {
        WEIGHT: weights.newest,
        BUFFER: dict(module.named_buffers()),
        REFERENCE: weights.reference or {},
        SCALE: _scale(seated),
    }
    for kind, tensors in weights.memory.items():
        found[kind] = dict(zip(weights.newest, tensors, strict=True))
    return {
        f"{kind}/{name}": tensor.detach().to("cpu", copy=True).contiguous()
        for kind, named in found.items()
        for name, tensor in named.items()
    }


def restore(seated: Seated, spec: TrainSpec, shape: Shape, folder: Path, done: float) -> None:
    """Put the checkpoint in `folder` into this rank's stages, however it was cut into stages
    and lanes; `done` is how far it was in epochs. Raises `CheckpointDoesNotFit`."""
    updates = len(schedule(spec.plan.schedule).updates(seated.seat))
    with ExitStack() as files:
        kept = _Kept(folder, seated, shape.lanes, files)
        if seated.loss_scale is not None and kept.has(SCALE, "value"):
            seated.loss_scale.value = kept.needed(SCALE, "value").item()
            seated.loss_scale.quiet = int(kept.needed(SCALE, "quiet").item())
            if kept.has(SCALE, "left_out"):  # files of before have none
                seated.loss_scale.left_out = int(kept.needed(SCALE, "left_out").item())
        for number in seated.stages:
            _fill(seated, number, kept, round(updates * done))


def _scale(seated: Seated) -> dict[str, Tensor]:
    """The factor of the loss in float16."""
    scale = seated.loss_scale
    if scale is None:
        return {}
    kept = {"value": scale.value, "quiet": scale.quiet, "left_out": scale.left_out}
    return {name: torch.tensor(number) for name, number in kept.items()}


def _fill(seated: Seated, number: int, kept: "_Kept", updates: int) -> None:
    weights, module = seated.weights[number], seated.stages[number].module
    names = list(weights.newest)
    memory = {
        kind: [kept.found(kind, name, tensor) for name, tensor in weights.newest.items()]
        for kind in REMEMBERED
        if any(kept.has(kind, name) for name in names)
    }
    left_out = seated.loss_scale.left_out if seated.loss_scale else 0
    found = {name: kept.needed(WEIGHT, name) for name in names}
    weights.restore(found, memory, updates, left_out)
    if weights.reference is not None:
        weights.reference = {name: kept.needed(REFERENCE, name) for name in names}
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            buffer.copy_(kept.needed(BUFFER, name))


class _Kept:
    """The files of a checkpoint, as one lane reads them: its own where there are as many
    lanes as before; otherwise the first one's, with the reference for weights."""

    def __init__(self, folder: Path, seated: Seated, lanes: int, files: ExitStack) -> None:
        self._ties, self._device = seated.ties, seated.world.device
        opened = [
            files.enter_context(safe_open(path, framework="pt"))
            for path in sorted(folder.glob("*.safetensors"))
        ]
        before = {int(file.metadata()["lane"]) for file in opened}
        self._is_same = len(before) == lanes
        lane = seated.seat.lane if self._is_same else 0
        self._files = _by_key(file for file in opened if int(file.metadata()["lane"]) == lane)

    def has(self, kind: str, name: str) -> bool:
        return self._key(kind, name) is not None

    def found(self, kind: str, name: str, like: Tensor) -> Tensor:
        """The tensor; zeros where there is none."""
        key = self._key(kind, name)
        return torch.zeros_like(like) if key is None else self._read(key)

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
        keys = (f"{kind}/{other}" for other in (name, *self._ties.get(name, ())))
        return next((key for key in keys if key in self._files), None)

    def _read(self, key: str) -> Tensor:
        tensor: Tensor = self._files[key].get_tensor(key)
        return tensor.to(self._device)


def _by_key(files: Iterable[Any]) -> Mapping[str, Any]:
    return {key: file for file in files for key in file.keys()}  # noqa: SIM118 (no mapping)
