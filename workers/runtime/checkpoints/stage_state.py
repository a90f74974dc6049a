"""One stage's part of a checkpoint: tensors under "kind/name", written and found again.

Of sharded state each replica writes what it keeps: a slice of a tensor is under "kind@first/name",
where `first` is the place of its first number in the flattened tensor. Of a layer that is split by
channels each writes its slice, under "kind@first.dim/name": from channel `first` on, along `dim`.
What a codec keeps of the samples that cross the cut behind a layer is under "passed/layer/...".
"""

from collections import defaultdict
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
from workers.runtime.compute.channels.splitting import Slices
from workers.runtime.messages.groups import led_stages
from workers.runtime.messages.thresholds import ThresholdSums
from workers.runtime.rank import Rank
from workers.runtime.samples.segments import round_size
from workers.runtime.state.exchanges.elastic import REFERENCE
from workers.runtime.state.loss_scale import LossScale
from workers.runtime.state.moving_average import AVERAGE
from workers.runtime.state.shard import Slice

WEIGHT, BUFFER, SCALE, PASSED = "weight", "buffer", "scale", "passed"
OPTIMIZER_STATE = ("velocity", "mean", "square", "row", "column", AVERAGE)
"""The kinds of `Weights.optimizer_state`."""

Place = tuple[int, int | None]
"""Where a slice begins, and along which dimension; None: among all of the tensor's numbers."""


class CheckpointDoesNotFit(StageflowError):
    """A checkpoint lacks something that the model of this run has."""

    advice = "It was made from another model, or with other parameters: start from the beginning."


def copy_of(rank: Rank, stage: int, alone: bool = False) -> dict[str, Tensor]:
    """Copies, on the CPU, of what the stage needs to go on and this rank has to save: masters and
    the state of the optimizer as it keeps them; on the first replica, or where this one is `alone`,
    also the newest weights where there are no masters, buffers, and what pipelines exchange by."""
    weights = rank.state.weights[stage]
    sums, leads = _sums_of(rank, stage), alone or stage in led_stages(rank.coordinates)
    kept = dict(weights.optimizer_state) if leads or not sums else {}
    if weights.masters is not None:
        kept[WEIGHT] = weights.masters
    split = None if rank.slices is None else rank.slices.get(stage, {})
    found = {
        _key_of(kind, part, split): tensor
        for kind, tensors in kept.items()
        for part, tensor in zip(weights.slices, tensors, strict=True)
        if split is None or leads or part.name in split
    }
    for name, channels in (split or {}).items():
        found[_sliced_key(WEIGHT, (channels.first, channels.dim), name)] = weights.newest[name]
    for name, each in rank.messages.kept(stage).items():
        found[f"{PASSED}/{_behind(rank, stage)}/{name}"] = each
    for kind, named in sums.state.items() if sums else ():
        found |= {f"{_of_replica(kind, rank, stage)}/{name}": each for name, each in named.items()}
    if leads:
        whole = {
            WEIGHT: {n: w for n, w in weights.newest.items() if n not in (split or ())}
            if weights.masters is None
            else {},
            BUFFER: rank.stages.buffers(stage),
            **weights.exchange_state,
            SCALE: _scale(rank.state.loss_scale),
        }
        found |= {
            f"{kind}/{name}": tensor
            for kind, named in whole.items()
            for name, tensor in named.items()
        }
    return {key: tensor.detach().to("cpu", copy=True).contiguous() for key, tensor in found.items()}


def _behind(rank: Rank, stage: int) -> str:
    """The last layer of a stage."""
    return rank.stages.layered.layers[rank.stages.bounds[stage][1] - 1].name


def _sums_of(rank: Rank, stage: int) -> ThresholdSums | None:
    """What this replica of the stage has not sent yet, where sums are coded."""
    buckets = rank.state.weights[stage].buckets
    return buckets.coded if buckets else None


def _of_replica(kind: str, rank: Rank, stage: int) -> str:
    """The kind of what each replica of the stage has for itself: "unsent.1"."""
    place = rank.groups.replicas[stage].place
    return f"{kind}.{place}"


def marks_of(rank: Rank, stage: int) -> object:
    """What is another one after a forward that changed the stage's buffers."""
    return [(name, id(b), b._version) for name, b in rank.stages.buffers(stage).items()]


def _key_of(kind: str, part: Slice, split: Slices | None = None) -> str:
    if split and part.name in split:
        channels = split[part.name]
        return _sliced_key(kind, (channels.first, channels.dim), part.name)
    return f"{kind}/{part.name}" if part.is_whole else f"{kind}@{part.first}/{part.name}"


def resume(
    rank: Rank, spec: TrainSpec, shape: Shape, folder: Path, epoch: int, samples: int
) -> int:
    """Put the checkpoint in `folder` into this rank's stages, however it was cut into stages and
    pipelines and in whichever precision its state was kept; the microbatches of `epoch` that are
    done. Of its `samples` those that fill no whole round of this plan are trained on again. `shape`
    is that of a whole epoch. Raises `CheckpointDoesNotFit`."""
    unit = round_size(shape.rounds, shape.batch, shape.num_pipelines)
    first = min(samples // (spec.plan.microbatch * unit) * unit, shape.num_microbatches)
    per_epoch = len(schedule(spec.plan.schedule).updates(rank.coordinates))
    updates = round(per_epoch * (epoch + first / shape.num_microbatches))
    with ExitStack() as files:
        kept = _Kept(folder, rank, shape.num_pipelines, files)
        if rank.state.loss_scale is not None:
            _fill_scale(rank.state.loss_scale, kept)
        for stage in rank.stages.modules:
            _fill(rank, stage, kept, updates)
            _fill_passed(rank, stage, kept)
    return first


def _fill_passed(rank: Rank, stage: int, kept: "_Kept") -> None:
    """What was kept of the samples that crossed the cuts of a stage, at both ends what the sender
    wrote. Behind another layer than before there is nothing, and samples go plain once more."""
    for cut in range(max(0, stage - 1), stage + 1):
        behind = f"{_behind(rank, cut)}/"
        names = (name for name in kept.names(PASSED) if name.startswith(behind))
        found = {name.removeprefix(behind): kept.needed(PASSED, name) for name in names}
        if found:
            rank.messages.keep(cut, found)


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
    newest, finest = weights.newest, weights.finest
    split = (rank.slices or {}).get(stage, {})

    def like(name: str) -> Tensor:
        return split[name].like_whole(newest[name]) if name in split else newest[name]

    def taken(name: str, whole: Tensor) -> Tensor:
        return split[name].own(whole) if name in split else whole

    optimizer_state = {
        kind: [
            each.copied(
                taken(each.name, kept.found(kind, each.name, like(each.name), finest[each.name]))
            )
            for each in weights.slices
        ]
        for kind in OPTIMIZER_STATE
        if any(kept.has(kind, name) for name in newest)
    }
    found = {name: taken(name, kept.needed(WEIGHT, name, like(name))) for name in newest}
    weights.restore(found, optimizer_state, updates, scale.left_out if scale else 0)
    if exchanged := weights.exchange_state:
        weights.restore_exchange(
            {
                kind: {
                    name: kept.exchanged(kind, name, w, finest[name]) for name, w in newest.items()
                }
                for kind in exchanged
            }
        )
    if sums := _sums_of(rank, stage):
        sums.load_state(
            {
                kind: {n: kept.needed(own, n) for n in newest if kept.has(own, n)}
                for kind in sums.state
                if (own := _of_replica(kind, rank, stage))
            },
            updates,
        )
    with torch.no_grad():
        for name, buffer in rank.stages.buffers(stage).items():
            buffer.copy_(kept.needed(BUFFER, name, buffer))


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
        self._slices: dict[str, list[Place]] = defaultdict(list)
        for kind, place, name in map(_read_key, self._files):
            if place is not None:
                self._slices[f"{kind}/{name}"].append(place)

    def has(self, kind: str, name: str) -> bool:
        return self._key(kind, name) is not None

    def names(self, kind: str) -> list[str]:
        """Of all tensors of a kind that are not in slices."""
        return [key.removeprefix(f"{kind}/") for key in self._files if key.startswith(f"{kind}/")]

    def found(self, kind: str, name: str, like: Tensor, least: torch.dtype) -> Tensor:
        """The tensor in the shape of `like`, in the bits of `least` at least; zeros where there is
        none."""
        key = self._key(kind, name)
        found = torch.zeros_like(like, dtype=least) if key is None else self._read(key, like)
        return found.to(torch.promote_types(found.dtype, least))

    def exchanged(self, kind: str, name: str, like: Tensor, least: torch.dtype) -> Tensor:
        """What pipelines exchange by: a reference that is not there begins as the weights, and all
        else that another number of pipelines left, or none, as zeros."""
        if kind == REFERENCE:
            return self.needed(kind, name, like).to(least)
        if not self._is_same:
            return torch.zeros_like(like, dtype=least)
        return self.found(kind, name, like, least)

    def needed(self, kind: str, name: str, like: Tensor | None = None) -> Tensor:
        """The tensor; raises `CheckpointDoesNotFit` where there is none. One in slices gets the
        shape of `like`."""
        for key in (self._key(other, name) for other in self._instead(kind)):
            if key is not None:
                return self._read(key, like)
        raise CheckpointDoesNotFit(f"the checkpoint has no {kind} {name!r}")

    def _instead(self, kind: str) -> tuple[str, ...]:
        if kind == REFERENCE or (kind == WEIGHT and not self._is_same):
            return (REFERENCE, WEIGHT)
        return (kind,)

    def _key(self, kind: str, name: str) -> str | None:
        """The key under this name, or under one that is tied to it."""
        keys = (f"{kind}/{other}" for other in (name, *self._tied.get(name, ())))
        return next((key for key in keys if key in self._files or key in self._slices), None)

    def _read(self, key: str, like: Tensor | None) -> Tensor:
        if key in self._files or like is None:
            tensor: Tensor = self._files[key].get_tensor(key)
            return tensor.to(self._device)
        kind, _, name = key.partition("/")
        places = sorted(self._slices[key])
        dims = {dim for _, dim in places}
        keys = [_sliced_key(kind, place, name) for place in places]
        dim = dims.pop() or 0
        joined = torch.cat([self._files[each].get_tensor(each) for each in keys], dim)
        if joined.numel() != like.numel():
            raise CheckpointDoesNotFit(
                f"of {kind} {name!r} the checkpoint has {joined.numel()} of {like.numel()} numbers"
            )
        return joined.view(like.shape).to(self._device)


def _read_key(key: str) -> tuple[str, Place | None, str]:
    """Kind, place of a slice (None: whole) and name."""
    place, _, name = key.partition("/")
    kind, _, found = place.partition("@")
    first, _, dim = found.partition(".")
    return kind, (int(first), int(dim) if dim else None) if first else None, name


def _sliced_key(kind: str, place: Place, name: str) -> str:
    first, dim = place
    return f"{kind}@{first}/{name}" if dim is None else f"{kind}@{first}.{dim}/{name}"


def _by_key(files: Iterable[Any]) -> Mapping[str, Any]:
    return {key: file for file in files for key in file.keys()}  # noqa: SIM118 (no mapping)
