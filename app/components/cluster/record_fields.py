"""What the data sheet of a cluster's device says, asked for within a form."""

from dataclasses import fields

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from backend.cluster.device_record import DeviceRecord, FlopRates

TERA, GIGA, MIB, MICRO, PICO = 1e12, 1e9, 2**20, 1e-6, 1e-12
LABELS = {
    "bandwidth": ("Memory, GB/s", GIGA),
    "on_chip": ("On-chip memory, MiB", MIB),
    "launch": ("Start of a layer, µs", MICRO),
    "joules_per_flop": ("Energy of an operation, pJ", PICO),
    "joules_per_byte": ("Energy of a byte of memory, pJ", PICO),
    "joules_per_link_byte": ("Energy of a byte sent, pJ", PICO),
}


def record_fields(now: DeviceRecord) -> DeviceRecord:
    """What is written there: 0 = not known. Raises `InvalidInput`."""
    with st.expander("Data sheet"):
        st.caption(
            "Of a device that nobody here has: *Estimate times for*, *the cluster's device* "
            "computes layers from it. 0 = not known."
        )
        left, right = st.columns(2)
        rates = {
            field.name: _amount(left, f"TFLOP/s in {field.name}", getattr(now.flops, field.name))
            for field in fields(FlopRates)
        }
        others = {
            name: _amount(right, label, getattr(now, name), unit)
            for name, (label, unit) in LABELS.items()
        }
    return DeviceRecord(FlopRates(**rates), **others)


def _amount(
    where: DeltaGenerator, label: str, now: float | None, unit: float = TERA
) -> float | None:
    """In its own unit; the value as it was where nobody changed it."""
    shown = (now or 0.0) / unit
    written = where.number_input(label, 0.0, None, shown, format="%g")
    return now if written == shown else written * unit or None
