"""Answers to planning as rows of a table."""

from app import formats
from backend.prediction.answer import Answer

HEAD = [
    "plan",
    "planner",
    "samples/s",
    "samples/update",
    "per minibatch",
    "vs data parallel",
    "vs 1 device",
    "sent",
    "memory",
    "gap",
]


def row(found: Answer) -> list[str]:
    """The cells under `HEAD`."""
    prediction = found.prediction
    return [
        prediction.plan.short_label,
        prediction.plan.planner,
        f"{prediction.samples_per_second:,.0f}",
        f"{found.samples_per_update:,}",
        formats.seconds(prediction.seconds_per_minibatch),
        formats.times(found.over_data_parallel) if found.over_data_parallel else "not possible",
        formats.times(found.over_one_device),
        formats.size(prediction.sent_bytes),
        formats.size(max(prediction.memory_bytes)),
        formats.percent(found.gap),
    ]
