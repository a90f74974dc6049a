"""What a device can do and takes by its data sheet, also one that nobody here has."""

from dataclasses import dataclass, fields

from backend.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class FlopRates:
    """Operations/s by the precision of a product (None = not known, or not computed in)."""

    float32: float | None = None
    tf32: float | None = None
    bfloat16: float | None = None
    float16: float | None = None


PRECISIONS = tuple(field.name for field in fields(FlopRates))


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """None = not known. Raises `InvalidInput`.

    flops      operations/s
    bandwidth  bytes/s of its memory
    on_chip    bytes of its caches or buffers, in which tiles of a product are kept
    launch     seconds that a layer takes beside its work
    joules_per_flop, joules_per_byte, joules_per_link_byte   of an operation, of a byte of its
               memory and of one that it sends, beside what it draws while it waits
    """

    flops: FlopRates = FlopRates()
    bandwidth: float | None = None
    on_chip: float | None = None
    launch: float | None = None
    joules_per_flop: float | None = None
    joules_per_byte: float | None = None
    joules_per_link_byte: float | None = None

    def __post_init__(self) -> None:
        above = [(f"flops of {name}", getattr(self.flops, name)) for name in PRECISIONS]
        above += [("bandwidth", self.bandwidth), ("on_chip", self.on_chip)]
        for name, value in above:
            if value is not None and value <= 0:
                raise InvalidInput(
                    f"cluster: a device's {name} is {value:g}, not above 0",
                    "Give operations/s, bytes/s or bytes, or leave it out where it is not known.",
                )
        for name in ("launch", "joules_per_flop", "joules_per_byte", "joules_per_link_byte"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidInput(
                    f"cluster: a device's {name} is {value:g}, below 0",
                    "Give seconds or joules, or leave it out where it is not known.",
                )


UNKNOWN = DeviceRecord()
