"""Who holds which device, since when, and until when as its pace tells."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import streamlit as st

from app.components.runs.run_words import run_link
from app.components.shell.grid import Column, grid, small, text, when
from app.formats import NOTHING, duration, plain
from backend.services.runs.occupancy import HeldDevices


def holding_list(held: Mapping[str, Sequence[HeldDevices]]) -> None:
    """A row for every run on every node."""
    rows = [(node, each) for node in sorted(held) for each in held[node]]
    grid(
        "holdings",
        (
            text("Node", 1.4, lambda row: f"**{plain(row[0])}**"),
            small("Devices", 1.2, lambda row: numbers(row[1].devices)),
            Column("Run", 2.4, lambda row: _run(row[1])),
            small("Owner", 1.2, lambda row: row[1].run.owner if row[1].run else ""),
            when("Since", 1.2, lambda row: row[1].since),
            small("Free again", 1.6, lambda row: _until(row[1])),
        ),
        rows,
    )


def numbers(devices: Sequence[int]) -> str:
    """As "0 to 3, 6"."""
    parts = []
    for _, group in groupby(enumerate(sorted(devices)), lambda each: each[1] - each[0]):
        found = [device for _, device in group]
        parts.append(f"{found[0]} to {found[-1]}" if len(found) > 2 else ", ".join(map(str, found)))
    return ", ".join(parts)


def _run(holding: HeldDevices) -> None:
    """The number of a run is for those who see it."""
    if holding.run is None:
        st.markdown(":gray[a run of another project]")
    else:
        run_link(holding.run)


def _until(holding: HeldDevices) -> str:
    return f"in {duration(holding.seconds)}" if holding.seconds is not None else NOTHING
