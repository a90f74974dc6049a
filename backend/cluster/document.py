"""A cluster as YAML: read from a person's file, and written back."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from typing import Any

import yaml

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.device_record import PRECISIONS, DeviceRecord, FlopRates
from backend.cluster.presets import name_and_count, preset
from backend.errors import InvalidInput

EXAMPLE = """\
levels:
  - {count: 4, bandwidth: 12e9, latency: 5e-6}
  - {count: 4, bandwidth: 1.25e9}
device: {name: V100, memory: 16e9, speed: 1.0}
"""
"""A device may have `watts`, `idle_watts`, `price` and the fields of a `DeviceRecord` too, its
`flops` by precision or, in float32, as a number. `device` may be a list instead, one entry per
device, server by server. The last level may say `sites: true`: its members are sites."""
ADVICE = f"Levels go innermost first, in bytes/s and seconds. Write it like this:\n{EXAMPLE}"
MAX_CHARACTERS = 100_000
OWN = ("memory", "speed", "watts", "idle_watts", "price")
RECORD = tuple(field.name for field in fields(DeviceRecord) if field.name != "flops")


def read_cluster(text: str) -> Cluster:
    """The cluster that a YAML document describes, levels innermost first (`EXAMPLE` shows one), or
    that a preset with its count names ("cluster-a:4").

    Numbers may be strings, because YAML 1.1 reads `12e9` as one. Raises `InvalidInput` with
    the line of a syntax error or the name of the wrong field, and what to write instead.
    """
    found = _parse(text)
    if isinstance(found, str) and (asked := name_and_count(found)):
        return preset(*asked)
    top = _mapping("cluster", found, {"levels", "device"})
    levels = top.get("levels")
    if not isinstance(levels, list) or not levels:
        raise InvalidInput(f"levels: a list of levels is needed, not {levels!r:.60}", ADVICE)
    inner = tuple(_level(f"levels[{place}]", entry) for place, entry in enumerate(levels))
    device = top.get("device")
    device = {} if device is None else device
    if not isinstance(device, list):
        return Cluster(inner, _device("device", device))
    if not device:
        raise InvalidInput("device: the list is empty", ADVICE)
    devices = tuple(_device(f"device[{n}]", entry) for n, entry in enumerate(device))
    return Cluster(inner, devices[0], devices)


def write_cluster(cluster: Cluster) -> str:
    """`cluster` as YAML that `read_cluster` reads back to an equal value."""
    device = [_plain(each) for each in cluster.devices] or _plain(cluster.device)
    levels = [_known(asdict(level)) for level in cluster.levels]
    for level in levels:
        if not level["sites"]:
            del level["sites"]
    return yaml.safe_dump({"levels": levels, "device": device}, sort_keys=False)


def _plain(device: Device) -> dict[str, Any]:
    found = asdict(device)
    record = found.pop("record")
    record["flops"] = _known(record["flops"]) or None
    return _known(found | record)


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _parse(text: str) -> object:
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"the cluster file has {len(text)} characters, not a few lines", ADVICE)
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as fault:
        place = fault.problem_mark or fault.context_mark
        line = f"line {place.line + 1}, column {place.column + 1}: " if place else ""
        raise InvalidInput(f"not valid YAML: {line}{fault.problem}", ADVICE) from None
    except (yaml.YAMLError, RecursionError, ValueError) as fault:
        raise InvalidInput(f"not valid YAML: {str(fault) or 'nested too deep'}", ADVICE) from None


def _mapping(field: str, value: object, known: set[str]) -> Mapping[str, object]:
    names = ", ".join(sorted(known))
    if not isinstance(value, dict):
        raise InvalidInput(f"{field}: a mapping with {names} is needed, not {value!r:.60}", ADVICE)
    if unknown := [name for name in value if name not in known]:
        raise InvalidInput(f"{field}: unknown field {unknown[0]!r:.60}; known are {names}", ADVICE)
    return value


def _level(field: str, entry: object) -> Level:
    level = _mapping(field, entry, {"count", "bandwidth", "latency", "cores", "sites"})
    for name in ("count", "bandwidth"):
        if name not in level:
            raise InvalidInput(f"{field}: {name} is missing", ADVICE)
    cores = level.get("cores")
    return Level(
        _whole(f"{field}.count", level["count"]),
        _number(f"{field}.bandwidth", level["bandwidth"]),
        _number(f"{field}.latency", level.get("latency", 0.0)),
        None if cores is None else _whole(f"{field}.cores", cores),
        _switch(f"{field}.sites", level.get("sites", False)),
    )


def _switch(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{field}: {value!r:.60} is not true or false", ADVICE)
    return value


def _device(field: str, entry: object) -> Device:
    device = _mapping(field, entry, {"name", "flops", *OWN, *RECORD})
    known = _numbers(field, device)
    record = {name: known[name] for name in RECORD if name in known}
    rates = FlopRates(**_rates(f"{field}.flops", device.get("flops")))
    return Device(
        str(device.get("name", Device().name)),
        **{name: known[name] for name in OWN if name in known},
        record=DeviceRecord(rates, **record),
    )


def _rates(field: str, flops: object) -> dict[str, float]:
    """By precision; a number is of float32."""
    if flops is None or not isinstance(flops, dict):
        return {} if flops is None else {"float32": _number(field, flops)}
    return _numbers(field, _mapping(field, flops, set(PRECISIONS)))


def _numbers(field: str, values: Mapping[str, object]) -> dict[str, float]:
    """Those that are given."""
    return {
        name: _number(f"{field}.{name}", value)
        for name, value in values.items()
        if name not in ("name", "flops") and value is not None
    }


def _whole(field: str, value: object) -> int:
    number = _number(field, value)
    if number != int(number):
        raise InvalidInput(f"{field}: {number:g} is not a whole number", ADVICE)
    return int(number)


def _number(field: str, value: object) -> float:
    """A finite number, 0 or more; a string such as "12e9" is read as one."""
    number = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            number = float(value)
    if not math.isfinite(number) or number < 0:
        raise InvalidInput(
            f"{field}: {value!r:.60} is not a number of 0 or more",
            "Write a plain number in bytes, bytes/s or seconds, such as 12e9 or 5e-6.",
        )
    return number
