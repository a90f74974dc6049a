"""The stages of a plan in figures, by columns."""

from collections.abc import Sequence
from typing import Any

from app.charts.groups import folds
from app.formats import NOTHING, seconds, size
from backend.cluster.cluster import Cluster
from backend.pipeline.actions import Flow
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shares import shares_text
from backend.planning.plan import Stage
from backend.prediction.cut_messages import CutMessages
from backend.prediction.prediction import Prediction
from backend.profiles.folds import Fold
from backend.profiles.profile import Profile


def stage_rows(profile: Profile, cluster: Cluster, prediction: Prediction) -> dict[str, list[Any]]:
    """The table by columns."""
    cut = prediction.plan.partition
    local = schedule(prediction.plan.schedule).local
    sent = CutMessages(profile, cut, prediction.plan.codecs, local).sent
    parts = [profile.layers[stage.first : stage.stop] for stage in cut.stages]
    blocks = shared_blocks(folds(profile.graph), cut.stages)
    table: dict[str, list[Any]] = {
        "stage": list(range(len(cut.stages))),
        "layers": [f"{stage.first}–{stage.stop - 1}" for stage in cut.stages],
        "from": [part[0].name for part in parts],
        "to": [part[-1].name for part in parts],
        **({"blocks": blocks} if any(blocks) else {}),
        "replicas": [stage.replicas for stage in cut.stages],
        **({"shares": list(map(shares_text, cut.shares))} if cut.shares else {}),
        "devices": [_devices(stage.devices) for stage in cut.stages],
        "compute": [seconds(spent) for spent in prediction.stage_seconds],
        "parameters": [size(sum(layer.parameter_bytes for layer in part)) for part in parts],
        "sends": _over_cuts(sent[Flow.ACTIVATION]),
        "memory": [size(need) for need in prediction.memory_bytes],
        "versions": list(prediction.versions),
    }
    if local or not profile.graph.is_two_way:
        table["receives back"] = _over_cuts(sent[Flow.GRADIENT])
    frozen = [sum(layer.frozen_bytes for layer in part) for part in parts]
    if any(frozen):
        table["frozen"] = [size(held) for held in frozen]
    shared = shared_weights(profile, cut.stages)
    return table | {"shared weights": shared} if any(shared) else table


def _over_cuts(found: Sequence[int]) -> list[str]:
    """Bytes of a microbatch; none behind the last stage, nor where the next one is on the same
    devices."""
    return [*(size(crossing) if crossing else NOTHING for crossing in found[:-1]), NOTHING]


def shared_blocks(found: Sequence[Fold], stages: Sequence[Stage]) -> list[str]:
    """Per stage, how many blocks of each fold it has: "11 of 32"; "11.5" where it is cut within."""
    texts: list[list[str]] = [[] for _ in stages]
    for fold in found:
        for stage, text in zip(stages, texts, strict=True):
            layers = min(fold.stop, stage.stop) - max(fold.first, stage.first)
            if layers > 0:
                text.append(f"{round(layers / fold.size, 2):g} of {fold.count}")
    return ["; ".join(text) for text in texts]


def shared_weights(profile: Profile, stages: Sequence[Stage]) -> list[str]:
    """Per stage, the tied weights that other stages read too: as their owner or as a reader."""
    texts: list[list[str]] = [[] for _ in stages]
    for tie in profile.graph.tied_weights:
        owner, *readers = (_home(stages, layer) for layer in (tie.owner, *tie.readers))
        if others := sorted(set(readers) - {owner}):
            texts[owner].append(f"owns {tie.weight}, read by {', '.join(map(str, others))}")
        for reader in others:
            texts[reader].append(f"reads {tie.weight} of {owner}")
    return ["; ".join(found) for found in texts]


def _home(stages: Sequence[Stage], layer: int) -> int:
    return next(n for n, stage in enumerate(stages) if stage.first <= layer < stage.stop)


def _devices(devices: tuple[int, ...]) -> str:
    first, last = devices[0], devices[-1]
    if len(devices) > 2 and devices == tuple(range(first, last + 1)):
        return f"{first}–{last}"
    return ", ".join(map(str, devices))
