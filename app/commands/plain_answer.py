"""What `plan` and `compare` print of an answer with --json."""

from typing import Any

from backend.codec import to_plain
from backend.prediction.answer import Answer
from backend.profiles.profile import Profile


def plain_answer(profile: Profile, found: Answer) -> dict[str, Any]:
    """An answer for scripts: seconds, bytes and ratios; layers by name, devices by number."""
    prediction = to_plain(type(found.prediction), found.prediction)
    chosen = prediction.pop("plan")
    plan = found.prediction.plan
    layers = profile.in_order(plan.partition.order).layers
    return {
        "planner": chosen["planner"],
        "schedule": chosen["schedule"],
        "label": plan.label,
        "microbatch": plan.microbatch,
        "batch": plan.batch,
        "recompute": plan.recompute,
        "shard_state": plan.shard_state,
        "lanes": plan.num_pipelines,
        "advance": plan.advance,
        "run_ahead": plan.run_ahead,
        "codecs": list(plan.codecs),
        "sites": chosen["sites"],
        "kept_order": chosen["kept_order"],
        "codec_of_sums": chosen["codec_of_sums"],
        "splits": chosen["splits"],
        "chunks": plan.partition.chunks,
        "placement": plan.partition.placement,
        "order": chosen["partition"]["order"],
        "stages": [
            stage | {"layers": [layer.name for layer in layers[stage["first"] : stage["stop"]]]}
            for stage in chosen["partition"]["stages"]
        ],
        "speedup_over_data_parallel": found.over_data_parallel,
        "speedup_over_one_device": found.over_one_device,
        "data_parallel_sent_bytes": found.data_parallel_bytes,
        "lower_bound_seconds": found.bound_seconds,
        "gap": found.gap,
        "bottleneck_seconds": found.bottleneck_seconds,
        "planner_seconds": found.planner_seconds,
        "is_short": found.is_short,
        "stopped": found.stopped,
        "samples_per_update": found.samples_per_update,
        "reason": found.reasons[0] if found.reasons else "",
        "reasons": list(found.reasons),
        **prediction,
    }
