"""The figures of a plan: how fast, against what, how much waits, does it fit, what travels."""

from app.components.shell.layout import Figure, Tone
from app.formats import (
    between,
    change,
    count,
    percent,
    rate,
    seconds,
    sentence,
    size,
    stages_words,
    times,
)
from app.terms import Term, explained
from backend.cluster.cluster import Cluster
from backend.prediction.answer import Answer
from backend.prediction.prediction import Prediction


def plan_figures(chosen: Answer, cluster: Cluster) -> list[Figure]:
    """Six figures; comparisons are with data parallelism where that fits the cluster."""
    found = chosen.prediction
    return [
        _throughput(chosen, cluster),
        _minibatch(chosen),
        Figure(
            "Bubble",
            percent(found.bubble),
            f"imbalance {percent(imbalance(found))}",
            help=explained(Term.BUBBLE, Term.IMBALANCE),
        ),
        _memory(found, cluster),
        _sent(chosen, cluster),
        _staleness(found),
    ]


def _minibatch(chosen: Answer) -> Figure:
    found = chosen.prediction
    held, range_ = count(samples(found), "sample"), between(found.seconds_range, seconds)
    return Figure(
        "Per minibatch",
        seconds(found.seconds_per_minibatch),
        range_ or held,
        help=f"Of {held}. Nine of ten runs are expected in the range. An update takes up to "
        f"{count(chosen.samples_per_update, 'sample')}.",
    )


def imbalance(found: Prediction) -> float:
    """How much longer the slowest place in the pipeline takes than the mean: all stages of its
    devices, replicas shared out."""
    cut = found.plan.partition
    shares = [
        sum(found.stage_seconds[stage] for stage in cut.held_by(pipeline_rank)) / replicas
        for pipeline_rank, replicas in enumerate(cut.replicas)
    ]
    mean = sum(shares) / len(shares)
    return max(shares) / mean - 1 if mean else 0.0


def samples(found: Prediction) -> int:
    """Samples of one minibatch."""
    return found.plan.microbatch * found.plan.batch


def _is_data_parallel(found: Prediction, cluster: Cluster) -> bool:
    return found.plan.partition.replicas == (cluster.num_devices,)


def _throughput(chosen: Answer, cluster: Cluster) -> Figure:
    value = rate(chosen.prediction.samples_per_second)
    ratio = chosen.over_data_parallel
    if ratio is None:
        return Figure("Throughput, samples", value, "data parallel does not fit")
    if _is_data_parallel(chosen.prediction, cluster):
        return Figure("Throughput, samples", value, "data parallelism")
    tone: Tone = "green" if ratio > 1.005 else "red" if ratio < 0.995 else "gray"
    return Figure("Throughput, samples", value, f"{times(ratio)} data parallel", tone)


def _memory(found: Prediction, cluster: Cluster) -> Figure:
    peak, limit = max(found.memory_bytes), cluster.device.memory
    cut = found.plan.partition
    most = cut.pipeline_rank_of(found.memory_bytes.index(peak))
    stage = stages_words(cut.held_by(most))
    if limit is None:
        return Figure("Peak memory", size(peak), stage, help="Limit not known")
    if not cluster.is_uniform:
        words = "Devices differ: the bars below show the one with the least room of each stage"
        return Figure("Peak memory", size(peak), stage, help=words)
    return Figure("Peak memory", size(peak), f"{size(limit - peak)} free", help=sentence(stage))


def _sent(chosen: Answer, cluster: Cluster) -> Figure:
    """Compared with what data parallelism sends for as many samples."""
    found, theirs = chosen.prediction, chosen.data_parallel_bytes
    ours = found.sent_bytes
    if not theirs or _is_data_parallel(chosen.prediction, cluster):
        return Figure("Sent per minibatch", size(ours), "all ranks", help=_plain_words(found))
    tone: Tone = "green" if ours < theirs else "gray"
    against = f"{change(ours, theirs)} vs data parallel"
    return Figure("Sent per minibatch", size(ours), against, tone, help=_plain_words(found))


def _plain_words(found: Prediction) -> str:
    """What would be sent without codecs; "" where there are none."""
    if not found.plain_bytes:
        return ""
    ratio = times(found.plain_bytes / found.sent_bytes)
    return f"{size(found.plain_bytes)} without codecs, {ratio} as much."


def _staleness(found: Prediction) -> Figure:
    words = explained(Term.STALENESS, Term.VERSIONS)
    late = count(found.staleness, "update") if found.staleness else "none"
    most = max(found.versions) if found.staleness else 1
    return Figure("Staleness", late, count(most, "weight version"), help=words)
