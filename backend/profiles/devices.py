"""What accelerators can do at most: operations and bytes per second by precision, and memory."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from backend.errors import InvalidInput

GIB = 2**30
TERA = 1e12


class Precision(StrEnum):
    """What a product multiplies. `FLOAT32` is without tensor cores, as torch multiplies matrices
    unless TF32 is allowed; the others are with them."""

    FLOAT32 = "float32"
    TF32 = "tf32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


@dataclass(frozen=True, slots=True)
class Peak:
    """What a device can do at most: `flops` operations/s, `bandwidth` bytes/s of its memory.
    `efficiency` (0 to 1) is the share of both that is assumed to be reached. `on_chip`: bytes in
    which tiles are kept (0 = not known: each tensor is taken to be read once); `launch`: seconds
    that a layer takes beside its work."""

    name: str
    flops: float
    bandwidth: float
    efficiency: float = 1.0
    on_chip: float = 0.0
    launch: float = 0.0


@dataclass(frozen=True, slots=True)
class DeviceType:
    """A model of accelerator. `name` is what commands call it, its words joined by dashes.

    memory     bytes
    bandwidth  bytes/s of its memory
    flops      dense operations/s (no 2:4 sparsity), by the precisions that it computes in
    watts      what it draws at most (its thermal design power); None = not known
    source     where the figures are published
    """

    name: str
    title: str
    memory: float
    bandwidth: float
    flops: Mapping[Precision, float]
    watts: float | None
    source: str

    def peak(self, precision: Precision) -> Peak:
        """Raises `InvalidInput` for a precision that the device does not compute in."""
        if precision not in self.flops:
            raise InvalidInput(
                f"a {self.title} does not compute in {precision}",
                f"Its peaks are known in {', '.join(self.flops)}.",
            )
        return Peak(f"{self.title} ({precision})", self.flops[precision], self.bandwidth)


def _row(
    name: str,
    title: str,
    gib: float,
    bandwidth: float,
    float32: float,
    tf32: float,
    half: float,
    watts: float,
    source: str,
    *,
    has_bfloat16: bool = True,
) -> DeviceType:
    """GiB, GB/s, TFLOP/s and W as data sheets write them; 0 = not computed in, or W not known.
    `half` is of float16 and, on devices that have it, of bfloat16, which are equally fast."""
    rates = {
        Precision.FLOAT32: float32,
        Precision.TF32: tf32,
        Precision.BFLOAT16: half if has_bfloat16 else 0,
        Precision.FLOAT16: half,
    }
    flops = {precision: rate * TERA for precision, rate in rates.items() if rate}
    return DeviceType(name, title, gib * GIB, bandwidth * 1e9, flops, watts or None, source)


def _tpu(
    name: str, title: str, gib: float, bandwidth: float, bfloat16: float, watts: float
) -> DeviceType:
    """A chip, which computes products in bfloat16; others are not published."""
    row = _row(name, title, gib, bandwidth, 0, 0, 0, watts, "Google Cloud's pages on TPUs")
    return replace(row, flops={Precision.BFLOAT16: bfloat16 * TERA})


_BOARD = "data sheet, by cores and clock"
_OLD = {"has_bfloat16": False}
DEVICES: dict[str, DeviceType] = {
    row.name: row
    for row in (
        #    name          title         GiB  GB/s  fp32   tf32   half   W   source
        _row("t4", "T4", 16, 320, 8.1, 0, 65, 70, "NVIDIA T4 data sheet, 2018", **_OLD),
        _row("p100", "P100", 16, 732, 10.6, 0, 21.2, 300, "Tesla P100 white paper, SXM2", **_OLD),
        _row("titan-x", "Titan X", 12, 480, 11.0, 0, 0, 250, "NVIDIA Titan X (Pascal), 2016"),
        _row("v100", "V100", 16, 900, 15.7, 0, 125, 300, "V100 data sheet, SXM2", **_OLD),
        _row("a100", "A100", 40, 1555, 19.5, 156, 312, 400, "A100 data sheet, SXM4 40 GB"),
        _row("a100-80gb", "A100 80GB", 80, 2039, 19.5, 156, 312, 400, "A100 data sheet, SXM 80 GB"),
        _row("l4", "L4", 24, 300, 30.3, 60, 121, 72, "L4 data sheet, its 2:4 sparsity halved"),
        _row("a10", "A10", 24, 600, 31.2, 62.5, 125, 150, "A10 data sheet"),
        _row("h100-pcie", "H100 PCIe", 80, 2000, 51, 378, 756, 350, "H100 data sheet, likewise"),
        _row("h100", "H100", 80, 3350, 67, 494.7, 989.4, 700, "H100 data sheet, SXM5, likewise"),
        _row("h200", "H200", 141, 4800, 67, 494.7, 989.4, 700, "H200 data sheet, SXM, likewise"),
        _row("b200", "B200", 180, 8000, 80, 1100, 2250, 1000, "Blackwell data sheet, HGX B200"),
        _tpu("tpu-v3", "TPU v3", 32, 900, 123, 0),
        _tpu("tpu-v4", "TPU v4", 32, 1200, 275, 192),
        _tpu("tpu-v5e", "TPU v5e", 16, 819, 197, 0),
        _tpu("tpu-v5p", "TPU v5p", 95, 2765, 459, 0),
        _tpu("tpu-v6e", "TPU v6e", 32, 1640, 918, 0),
        _row("orin-nano", "Orin Nano", 8, 68, 1.28, 0, 0, 15, f"Jetson Orin Nano 8 GB {_BOARD}"),
        _row("agx-orin", "AGX Orin", 64, 204.8, 5.32, 0, 0, 60, f"Jetson AGX Orin 64 GB {_BOARD}"),
    )
}
"""Looked up on 2026-11-20 and 22. The vendor's own files could not be opened from where this was
written: B200, H100, H200 and A100 are as glennklockwood.com/garden/processors quotes NVIDIA, the
others as listed by hmc-tech.com and sysrqmts.com, rounded as in the data sheets. A10, L4, Titan X
and the A100 of 80 GB were not looked up again: they are from memory of the data sheets. The
watts of A100, H100, H200 and B200 are as apartsin.com and runpod.io list them (2026-11-26), the
others from memory. TPU v4 is as glennklockwood.com/garden/tpuv4 quotes Google, operations and bytes
of v5e and v6e as notes.shashankshekhar.com lists them (to two digits; the third is from memory);
v3, v5p and the memory of v5e and v6e are from memory. Clock, cores, memory and watts of the Orin
Nano are as brojogopalsapui.com quotes its data sheet (2026-11-26), the AGX Orin is from memory. A
board's operations/s are 2 x cores x clock, without its tensor cores, and its memory is its host's
too."""

_WRITTEN = {
    "fp32": Precision.FLOAT32,
    "bf16": Precision.BFLOAT16,
    "fp16": Precision.FLOAT16,
    **{precision.value: precision for precision in Precision},
}


def find(text: str) -> tuple[DeviceType, Precision | None] | None:
    """The device that `text` names, and its precision where that is said: "h100", "h100-tf32",
    "NVIDIA A100-SXM4-80GB", "H100 SXM (bf16, dense)". None where no row of the table is."""
    joined = re.sub(r"(\d) gb\b", r"\1gb", re.sub(r"[^a-z0-9]+", " ", text.casefold()))
    words = set(joined.split())
    named = [row for row in DEVICES.values() if words >= set(row.name.split("-"))]
    if not named:
        return None
    said = (_WRITTEN[word] for word in sorted(words) if word in _WRITTEN)
    return max(named, key=lambda row: len(row.name.split("-"))), next(said, None)


def peak(name: str, precision: str = Precision.FLOAT32) -> Peak:
    """The peak of the device that `name` names (see `find`), in the precision that the name
    says, else in `precision`. Raises `InvalidInput` for an unknown one of either."""
    found = find(name)
    if found is None:
        raise InvalidInput(f"no peaks of a device {name!r} are known", f"Choose one of: {names()}.")
    device, said = found
    return device.peak(said or precision_named(precision))


def precision_named(name: str) -> Precision:
    """Raises `InvalidInput` for an unknown one."""
    if name not in list(Precision):
        raise InvalidInput(f"no precision {name!r}", f"Choose one of: {', '.join(Precision)}.")
    return Precision(name)


def names() -> str:
    """Every name of the table, for advice."""
    return ", ".join(DEVICES)
