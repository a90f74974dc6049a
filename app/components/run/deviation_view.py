"""How far the measured actions were from the predicted ones: in all, by kind, the largest."""

from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app.charts.bars import KINDS, Bars
from app.charts.canvas import WORDS
from app.charts.deviations import Deviations, deviations
from app.components.shell.download import download
from app.formats import NOTHING, change, count, percent, seconds, signed_seconds

LARGEST = 20


def deviation_view(
    run_id: int, segment: int, measured: Bars, predicted: Bars, *, is_shared: bool
) -> None:
    """One sentence, which says where others used the cores that the prediction has for the ranks;
    folded away the tables and the join as a file."""
    found = deviations(measured, predicted)
    st.caption(_sentence(segment, found, is_shared))
    if not len(found.ours):
        return
    with st.expander("Action by action", icon=":material/difference:"):
        st.markdown(":small[**By kind of action**]")
        st.dataframe(kind_rows(found), hide_index=True, key="deviations-kinds", alt="By kind")
        st.markdown(f":small[**The {min(LARGEST, len(found.ours))} largest deviations**]")
        table = deviation_rows(found, found.largest(LARGEST))
        st.dataframe(table, hide_index=True, key="deviations-largest", alt="Largest deviations")
        name = f"run-{run_id}-epoch-{segment + 1}-deviations.csv"
        download("All actions as CSV", lambda: deviations_csv(found), name, "text/csv")


def _sentence(segment: int, found: Deviations, is_shared: bool) -> str:
    error = percent(found.median_share) if found.median_share is not None else "not known"
    whole, wanted = found.measured.makespan, found.predicted.makespan
    where = " on cores of their own" if is_shared else ""
    parts = [
        f"Median error per action **{error}**",
        f"epoch {segment + 1} as a whole {seconds(whole)} measured, {seconds(wanted)} predicted"
        f"{where} ({change(whole, wanted)})",
    ]
    if found.unmatched:
        parts.append(f"{count(found.unmatched, 'action')} only in one of the two")
    return " · ".join(parts)


def kind_rows(found: Deviations) -> dict[str, list[Any]]:
    """The table by kind of action, by columns."""
    kinds = found.by_kind()
    return {
        "action": [kind.word for kind in kinds],
        "number": [count(kind.number) for kind in kinds],
        "measured, median": [seconds(kind.measured) for kind in kinds],
        "predicted, median": [seconds(kind.predicted) for kind in kinds],
        "median error": [NOTHING if k.error is None else percent(k.error) for k in kinds],
        "all together": [signed_seconds(kind.longer) for kind in kinds],
    }


def deviation_rows(found: Deviations, places: NDArray[np.int64]) -> dict[str, list[Any]]:
    """The actions at `places` of the join, by columns."""
    ours, bars = found.ours[places], found.measured
    return {
        "rank": bars.rank[ours].tolist(),
        "action": [WORDS[KINDS[kind]] for kind in bars.kind[ours]],
        "stage": bars.stage[ours].tolist(),
        "microbatch": [NOTHING if m < 0 else count(int(m)) for m in bars.microbatch[ours]],
        "at": [seconds(float(start)) for start in bars.start[ours]],
        "measured": [seconds(float(long)) for long in bars.seconds[ours]],
        "predicted": [
            seconds(float(long)) for long in found.predicted.seconds[found.theirs[places]]
        ],
        "error": [signed_seconds(float(error)) for error in found.seconds[places]],
        "error, %": [
            NOTHING if np.isnan(share) else f"{100 * share:+.1f}".replace("-", "−")
            for share in found.shares[places]
        ],
    }


def deviations_csv(found: Deviations) -> str:
    """A row per action that is in both timelines."""
    ours, bars = found.ours, found.measured
    head = "rank,index,action,stage,microbatch,start,measured_seconds,predicted_seconds\n"
    columns = zip(
        bars.rank[ours].tolist(),
        bars.index[ours].tolist(),
        (WORDS[KINDS[kind]].replace(",", "") for kind in bars.kind[ours]),
        bars.stage[ours].tolist(),
        bars.microbatch[ours].tolist(),
        bars.start[ours].tolist(),
        bars.seconds[ours].tolist(),
        found.predicted.seconds[found.theirs].tolist(),
        strict=True,
    )
    return head + "".join(f"{','.join(map(str, row))}\n" for row in columns)
