"""The pairs side by side in figures, the best of each column marked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.components.plan.plan_figures import samples
from app.formats import NOTHING, SPACE, count, percent, rate, seconds, size, times
from app.queries.outcomes import Outcome

BEST = f"★{SPACE}"


@dataclass(frozen=True, slots=True)
class Measure:
    """A column: `value` to rank by (None: not comparable), `text` for eyes."""

    title: str
    value: Callable[[Outcome], float]
    text: Callable[[float], str]
    most_is_best: bool = False


MEASURES = (
    Measure("samples", lambda o: o.prediction.samples_per_second, rate, most_is_best=True),
    Measure("per minibatch", lambda o: o.prediction.seconds_per_minibatch, seconds),
    Measure("bubble", lambda o: o.prediction.bubble, percent),
    Measure("peak memory", lambda o: max(o.prediction.memory_bytes), size),
    Measure("sent per sample", lambda o: o.prediction.sent_bytes / samples(o.prediction), size),
    Measure("weight versions", lambda o: max(o.prediction.versions), lambda v: count(int(v))),
    Measure(
        "staleness",
        lambda o: o.prediction.staleness,
        lambda v: count(int(v), "update") if v else "none",
    ),
)


def outcome_table(outcomes: Sequence[Outcome], reference: float | None) -> None:
    """One row per pair; `reference` is data parallelism's samples/s."""
    st.table(outcome_rows(outcomes, reference))
    st.caption(
        f"{BEST.strip()} the best of its column. Throughput and bubble of the steady segment that "
        "is simulated; speed-up over data parallelism that synchronises every round."
    )


def outcome_rows(outcomes: Sequence[Outcome], reference: float | None) -> dict[str, list[Any]]:
    """The table by columns."""
    table: dict[str, list[Any]] = {
        "": [f"\\#{number + 1}" for number in range(len(outcomes))],
        "plan and schedule": [found.name for found in outcomes],
    }
    for measure in MEASURES:
        values = [measure.value(found) for found in outcomes]
        table[measure.title] = _marked(values, measure.text, measure.most_is_best)
    speeds = [found.prediction.samples_per_second for found in outcomes]
    if reference:
        gains = [speed / reference for speed in speeds]
        table["over data parallel"] = _marked(gains, times, True)
    else:
        table["over data parallel"] = [NOTHING] * len(outcomes)
    return table


def _marked(values: Sequence[float], text: Callable[[float], str], most_is_best: bool) -> list[str]:
    """Equal ones are all marked, unless all are equal."""
    best = max(values) if most_is_best else min(values)
    told = len(set(map(text, values))) > 1
    return [f"**{BEST}{text(v)}**" if told and text(v) == text(best) else text(v) for v in values]


def stage_rows(outcomes: Sequence[Outcome]) -> dict[str, list[Any]]:
    """Weight versions and staleness of every stage, by columns."""
    most = max((len(found.staleness) for found in outcomes), default=0)
    table: dict[str, list[Any]] = {"plan and schedule": [found.name for found in outcomes]}
    for stage in range(most):
        table[f"stage {stage}"] = [_stage(found, stage) for found in outcomes]
    return table


def _stage(found: Outcome, stage: int) -> str:
    if stage >= len(found.staleness):
        return ""
    versions, stale = found.prediction.versions[stage], found.staleness[stage]
    late = f", {count(stale, 'update')} stale" if stale else ""
    return f"{count(versions, 'version')}{late}"
