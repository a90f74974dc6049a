"""When a training ends before its last epoch."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.runs.events import ACCURACY, HELD_OUT_LOSS, PERPLEXITY
from backend.runs.request.spec import StopSpec
from backend.runs.request.stopping import evaluations_since_best, is_larger_better, why_ended


def patient(values: list[float], larger: bool) -> int:
    """As training loops count: a better value begins anew."""
    best, waited = None, 0
    for value in values:
        if best is None or (value > best if larger else value < best):
            best, waited = value, 0
        else:
            waited += 1
    return waited


@given(st.lists(st.floats(-2, 2) | st.sampled_from([0.0, 1.0])), st.booleans())
def test_patience_counts_evaluations_without_a_better_value(values, larger: bool) -> None:
    assert evaluations_since_best(values, larger) == patient(values, larger)


def test_a_run_ends_by_patience_updates_or_time() -> None:
    stop = StopSpec(patience=2, updates=100, seconds=60)
    assert why_ended(stop, [0.5, 0.4, 0.41], 99, 59) == ""
    assert why_ended(stop, [0.5, 0.4, 0.41, 0.4], 99, 59) == (
        "held-out loss has not been better than 0.4 for 2 evaluations"
    )
    assert why_ended(stop, [0.5], 100, 0) == "100 weight updates are made"
    assert why_ended(stop, [], 0, 60) == "60 s have passed since the run started"
    assert why_ended(StopSpec(), [1, 2, 3], 10**9, 1e9) == ""


@pytest.mark.parametrize(
    ("metric", "larger"),
    [(HELD_OUT_LOSS, False), (PERPLEXITY, False), (ACCURACY, True), ("f1", None)],
)
def test_which_values_are_better(metric: str, larger: bool | None) -> None:
    stop = StopSpec(1, metric)
    assert is_larger_better(stop) is larger
    assert is_larger_better(replace(stop, better="larger")) is True
    assert is_larger_better(replace(stop, better="smaller")) is False
