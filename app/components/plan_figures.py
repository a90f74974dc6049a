"""The figures of a plan: how fast, against what, how much waits, does it fit, what travels."""

from collections.abc import Sequence

from app.components.figures import Figure, Tone
from app.formats import change, count, percent, rate, seconds, size, times
from backend.cluster.cluster import Cluster
from backend.prediction.prediction import Prediction
from backend.prediction.propose import Proposal


def plan_figures(
    chosen: Proposal, everything: Sequence[Proposal], cluster: Cluster
) -> list[Figure]:
    """Six figures; comparisons are with data parallelism where that fits the cluster."""
    found = chosen.prediction
    return [
        _throughput(chosen, cluster),
        Figure("Per minibatch", seconds(found.seconds_per_minibatch), _samples(found)),
        Figure("Bubble", percent(found.bubble), f"imbalance {percent(imbalance(found))}"),
        _memory(found, cluster),
        _sent(found, _data_parallel(everything, cluster)),
        _staleness(found),
    ]


def imbalance(found: Prediction) -> float:
    """How much longer the slowest stage takes than the mean, replicas shared out."""
    shares = [
        spent / stage.replicas
        for spent, stage in zip(found.stage_seconds, found.plan.partition.stages, strict=True)
    ]
    mean = sum(shares) / len(shares)
    return max(shares) / mean - 1 if mean else 0.0


def samples(found: Prediction) -> int:
    """Samples of one minibatch."""
    return found.plan.microbatch * found.plan.batch


def _samples(found: Prediction) -> str:
    return count(samples(found), "sample")


def _is_data_parallel(found: Prediction, cluster: Cluster) -> bool:
    return found.plan.partition.replicas == (cluster.num_devices,)


def _data_parallel(everything: Sequence[Proposal], cluster: Cluster) -> Prediction | None:
    for proposal in everything:
        if _is_data_parallel(proposal.prediction, cluster):
            return proposal.prediction
    return None


def _throughput(chosen: Proposal, cluster: Cluster) -> Figure:
    value = rate(chosen.prediction.samples_per_second)
    if chosen.speedup is None:
        return Figure("Throughput, samples", value, "data parallel does not fit")
    if _is_data_parallel(chosen.prediction, cluster):
        return Figure("Throughput, samples", value, "is data parallel")
    tone: Tone = "green" if chosen.speedup > 1.005 else "red" if chosen.speedup < 0.995 else "gray"
    return Figure("Throughput, samples", value, f"{times(chosen.speedup)} data parallel", tone)


def _memory(found: Prediction, cluster: Cluster) -> Figure:
    peak, limit = max(found.memory_bytes), cluster.device.memory
    stage = found.memory_bytes.index(peak)
    if limit is None:
        return Figure("Peak memory", size(peak), f"stage {stage}", help="Limit not known")
    return Figure("Peak memory", size(peak), f"{size(limit - peak)} free", help=f"Stage {stage}")


def _sent(found: Prediction, base: Prediction | None) -> Figure:
    """Compared per sample, since minibatches may differ in size."""
    value = size(found.sent_bytes)
    if base is None or base is found or not base.sent_bytes:
        return Figure("Sent per minibatch", value, "all ranks")
    ours, theirs = found.sent_bytes / samples(found), base.sent_bytes / samples(base)
    tone: Tone = "green" if ours < theirs else "gray"
    return Figure("Sent per minibatch", value, f"{change(ours, theirs)} vs data parallel", tone)


def _staleness(found: Prediction) -> Figure:
    if not found.staleness:
        return Figure("Staleness", "none", "1 weight version")
    most = max(found.versions)
    return Figure("Staleness", count(found.staleness, "update"), count(most, "weight version"))
