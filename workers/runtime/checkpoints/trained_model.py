"""The trained model as Hugging Face lays it out: one file of safetensors, or shards and an index.

With the config that a model came from, `from_pretrained` opens the folder. No rank holds more of
the model than its own stages: what another rank writes is sent to it in pieces.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from backend.pipeline.codecs.catalog import codec
from backend.planning.plan import Plan
from backend.runs.events import Artifact
from backend.runs.history.records import TRAINED_INDEX, TRAINED_MODEL
from workers.definitions.adapters import adapter_names, merged
from workers.definitions.layers import LayeredModel
from workers.runtime.checkpoints.tensor_files import BLOCK, TensorForm, pieces, write_pieces
from workers.runtime.messages.groups import led_stages
from workers.runtime.messages.world import World
from workers.runtime.rank import Rank
from workers.runtime.reports.reporter import Reporter

SHARD = 5 * 10**9
"""Most bytes of tensors in a file, as `huggingface_hub` has it; a model of no more is one file, and
a tensor that is larger has a file of its own."""
CODECS_MARK = "stageflow_codecs"
"""The key of `marks_of_codecs`."""


@dataclass(frozen=True, slots=True)
class HeldTensor:
    """Where a tensor is: with `rank`, which calls it `name`."""

    rank: int
    name: str
    form: TensorForm


Forms = Mapping[str, TensorForm]
Held = Mapping[int, Forms]
"""What a rank has, by stage."""
Layout = Mapping[str, Mapping[str, HeldTensor]]
"""By file and name in it. The file of several ranks' tensors is rank 0's."""


def save(
    rank: Rank, plan: Plan, companions: Mapping[str, str], folder: Path, reporter: Reporter
) -> None:
    """Write the model into `folder` with its `companions`, and report every file. Adapters are
    added to the weights of their layers. Codecs that are layers of the model are named in the
    files' metadata and in the log.

    Every stage's first replica has its weights (with pipelines: the first one's, which are the
    reference). All ranks call it; a rank writes the shards of its own stages, or sends rank 0 what
    belongs into the only file.
    """
    world, model = rank.world, rank.stages.layered.model
    held = {stage: merged(model, tensors) for stage, tensors in _held(rank).items()}
    state = model.state_dict()
    every = world.gathered({stage: _forms(tensors) for stage, tensors in held.items()})
    found = {name for told in every for forms in told.values() for name in forms}
    gone = adapter_names(model) - found  # they are in the weights of their layers
    forms = {name: form for name, form in _forms(state).items() if name not in gone}
    files = world.told(layout(forms, rank.stages.tied, every) if world.rank == 0 else {})
    marks = marks_of_codecs(plan, rank.stages.layered)
    own = {name: tensor for tensors in held.values() for name, tensor in tensors.items()}
    for name, places in files.items():
        _write(world, folder / name, places, {**state, **own}, reporter, marks)
    if world.rank == 0:
        if marks:
            reporter.log(
                f"The model was trained and evaluated with {marks[CODECS_MARK]}. Its weights were "
                "saved without: keep the same part of every sample there, or evaluate it anew."
            )
        index = {TRAINED_INDEX: _index(files)} if len(files) > 1 else {}
        for name, text in {**index, **companions}.items():
            (folder / name).write_text(text)
            reporter(Artifact(name, str(folder / name)))
    world.barrier()


def marks_of_codecs(plan: Plan, layered: LayeredModel) -> dict[str, str]:
    """What a file's metadata says of the plan's codecs that are layers of the model: "top10 behind
    encoder.3"; nothing where there are none."""
    stages = plan.partition.stages
    found = [
        f"{name} behind {layered.layers[stages[cut].stop - 1].name}"
        for cut, name in enumerate(plan.codecs)
        if name and codec(name).is_layer and plan.partition.crosses(cut)
    ]
    return {CODECS_MARK: ", ".join(found)} if found else {}


def _held(rank: Rank) -> dict[int, dict[str, Tensor]]:
    """What this rank answers for of the model's state: parameters and persistent buffers, by
    stage."""
    wanted = rank.stages.layered.model.state_dict().keys()
    evaluated = {stage: dict(weights.evaluated) for stage, weights in rank.state.weights.items()}
    led = led_stages(rank.coordinates) if rank.coordinates.pipeline == 0 else ()
    found = {}
    for stage, slices in (rank.slices or {}).items():
        for name, each in slices.items():  # all replicas put one together at a time
            whole = each.whole(evaluated[stage][name])
            if stage in led:  # in the host's memory: the device may have room for slices alone
                evaluated[stage][name] = whole.cpu()
    for stage in led:
        parameters = dict(rank.stages.modules[stage].module.named_parameters())
        state = parameters | rank.stages.buffers(stage) | evaluated[stage]
        found[stage] = {name: tensor.detach() for name, tensor in state.items() if name in wanted}
    return found


def _forms(tensors: Mapping[str, Tensor]) -> dict[str, TensorForm]:
    return {name: TensorForm.of(tensor) for name, tensor in tensors.items()}


def layout(state: Forms, tied: Mapping[str, Sequence[str]], every: Sequence[Held]) -> Layout:
    """Every name of the model's own `state`, in files, where rank r holds `every[r]`, by stage. A
    tensor with several names (`tied`) is there under each; what no stage reads is rank 0's, with
    its first value."""
    held = {stage: (r, forms) for r, told in enumerate(every) for stage, forms in told.items()}
    by_name = {
        name: (stage, HeldTensor(held[stage][0], name, form))
        for stage in sorted(held, reverse=True)
        for name, form in held[stage][1].items()
    }
    places: dict[int, dict[str, HeldTensor]] = defaultdict(dict)
    for name, form in state.items():
        known = next((other for other in (name, *tied[name]) if other in by_name), None)
        stage, place = by_name[known] if known else (0, HeldTensor(0, name, form))
        places[stage][name] = place
    in_order = {name: place for stage in sorted(places) for name, place in places[stage].items()}
    shards = [shard for stage in sorted(places) for shard in _shards(places[stage])]
    if len(shards) < 2 or _size(in_order.values()) <= SHARD:
        return {TRAINED_MODEL: in_order}
    last = len(shards)
    return {
        f"model-{number:05}-of-{last:05}.safetensors": shard
        for number, shard in enumerate(shards, start=1)
    }


def _shards(places: Mapping[str, HeldTensor]) -> Iterator[dict[str, HeldTensor]]:
    """The tensors in their order, in as few files as that allows."""
    shard, size = dict[str, HeldTensor](), 0
    for name, place in places.items():
        if shard and size + place.form.size > SHARD:
            yield shard
            shard, size = {}, 0
        shard[name] = place
        size += place.form.size
    if shard:
        yield shard


def _size(places: Iterable[HeldTensor]) -> int:
    return sum(place.form.size for place in places)


def _write(
    world: World,
    path: Path,
    places: Mapping[str, HeldTensor],
    own: Mapping[str, Tensor],
    reporter: Reporter,
    marks: Mapping[str, str],
) -> None:
    """Write the file where it is this rank's, or send to rank 0 what it has of it."""
    holders = {place.rank for place in places.values()}
    writer = min(holders) if len(holders) == 1 else 0

    def pieces_of(name: str) -> Iterator[Tensor]:
        place = places[name]
        if place.rank == world.rank:
            return pieces(own[place.name])
        return world.received(place.rank, place.form.size, BLOCK)

    if world.rank == writer:
        forms = {name: place.form for name, place in places.items()}
        write_pieces(path, forms, pieces_of, {"format": "pt", **marks})
        reporter(Artifact(path.name, str(path)))
        return
    for place in places.values():
        if place.rank == world.rank and place.form.size:
            world.send(pieces(own[place.name]), writer)


def _index(files: Layout) -> str:
    """Which file holds each tensor, and the bytes of all."""
    names = {name: file for file, places in files.items() for name in places}
    size = _size(place for places in files.values() for place in places.values())
    return json.dumps({"metadata": {"total_size": size}, "weight_map": names}, indent=2)
