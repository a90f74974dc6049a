"""A profile beside another one: totals, layer by layer, in numbers and bars."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.groups import Detail, LayerGroup, compute, pair_groups
from app.charts.layer_costs import profile_pair
from app.components.profile.layer_table import column_of
from app.components.shell.layout import Figure, figures
from app.components.shell.pick import pick
from app.formats import NOTHING, change, count, percent, seconds, size, time_unit
from app.session import state
from app.session.state import Param
from backend.profiles.layer import Layer
from backend.profiles.pair import NEAR, SIGNIFICANT, ProfilePair
from backend.profiles.profile import Profile
from backend.runs.profiles import StoredProfile

Time = Callable[[Layer], float]
TIMES: dict[str, Time] = {
    "forward": lambda layer: layer.forward,
    "backward": lambda layer: layer.backward,
    "update": lambda layer: layer.update,
}


def profile_comparison(
    stored: StoredProfile,
    others: Sequence[StoredProfile],
    describe: Callable[[StoredProfile], str],
    detail: Detail,
) -> None:
    """Choose the other one; the newest of the same definition is chosen already."""
    alike = [other for other in others if other.definition_id == stored.definition_id]
    unlike = [other for other in others if other not in alike]
    other = pick(
        "Compare with",
        [*alike, *unlike] if alike else [None, *unlike],
        Param.OTHER,
        lambda p: p.id if p else "",
        lambda p: describe(p) if p else "none of the same model; choose another",
        width=420,
        depends=state.text(Param.OTHER) == str(stored.id),
    )
    if other is None:
        return
    pair = ProfilePair(stored.profile, other.profile)
    if pair.per_sample:
        st.caption(
            f"Times of profile {other.id} (microbatch {other.profile.microbatch}) are shown for "
            f"{stored.profile.microbatch} samples, in proportion."
        )
    _totals(pair)
    names = f"profile {stored.id}", f"profile {other.id}"
    alt = "Compute of each layer in both profiles"
    st.plotly_chart(profile_pair(pair, names, detail), key="pair", config=CONFIG, alt=alt)
    table = rows(pair, (str(stored.id), str(other.id)), detail)
    shown = [group for group, _, _ in pair_groups(pair, detail)]
    st.dataframe(
        table,
        hide_index=True,
        height=320,
        key="pair-table",
        placeholder=NOTHING,
        column_config={
            "layer": st.column_config.TextColumn(width="medium", pinned=True),
            **{name: _format(name, values, shown) for name, values in table.items() if "," in name},
        },
        alt="Seconds of every layer in both profiles, and how far they are apart",
    )


def _format(name: str, values: Sequence[float | None], shown: Sequence[LayerGroup]) -> Any:
    if name.startswith("Δ"):
        return st.column_config.NumberColumn(format="%+.1f")
    return column_of(values, shown)


def _totals(pair: ProfilePair) -> None:
    one, other, scale = pair.one, pair.other, pair.scale
    near, counted = pair.significant()

    def total(label: str, time: Time) -> Figure:
        mine, theirs = (sum(map(time, each.layers)) for each in (one, other))
        note = f"{change(theirs * scale, mine)} from {seconds(mine)}" if mine else ""
        return Figure(label, seconds(theirs * scale), note)

    figures(
        (
            total("Forward", TIMES["forward"]),
            total("Backward", TIMES["backward"]),
            Figure("Parameters", size(other.parameter_bytes), _from(other, one)),
            Figure(
                "Layers that agree",
                f"{near} of {counted}",
                f"within {percent(NEAR, 0)}",
                help=f"Of the layers with {percent(SIGNIFICANT, 0)} of the compute or more.",
            ),
        ),
        "pair",
    )


def _from(other: Profile, one: Profile) -> str:
    if other.parameter_bytes == one.parameter_bytes:
        return f"the same, {count(len(other.layers), 'layer')}"
    return f"{change(other.parameter_bytes, one.parameter_bytes)} from {size(one.parameter_bytes)}"


def rows(pair: ProfilePair, names: tuple[str, str], detail: Detail) -> dict[str, list[Any]]:
    """The table by columns: per kind of time the one's, the other's, and the difference in %;
    of equal blocks that are folded, those of all together."""
    found = list(pair_groups(pair, detail))
    sides = [part for each in found for part in each[1:] if part]
    factor, unit = time_unit(max((part.total(compute) for part in sides), default=0.0))
    table: dict[str, list[Any]] = {"layer": [group.name for group, _, _ in found]}
    for what, time in TIMES.items():
        scale = pair.scale if time is not TIMES["update"] else 1.0
        ones = [_total(one, time) for _, one, _ in found]
        others = [_times(_total(other, time), scale) for _, _, other in found]
        table[f"{what} {names[0]}, {unit}"] = [_times(v, factor) for v in ones]
        table[f"{what} {names[1]}, {unit}"] = [_times(v, factor) for v in others]
        table[f"Δ {what}, %"] = [
            100 * (b / a - 1) if a and b is not None else None
            for a, b in zip(ones, others, strict=True)
        ]
    return table


def _total(part: LayerGroup | None, time: Time) -> float | None:
    return None if part is None else part.total(time)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
