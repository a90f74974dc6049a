"""`stageflow doctor`: whether this machine has everything that a job needs."""

import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from app import formats
from app.commands.options.shared import Json
from app.server import launch
from app.terminal import print_json, print_table
from backend.bootstrap import connect
from backend.errors import StageflowError
from backend.queue.client import ping
from backend.runs.dispatch.nodes import Node
from backend.sandbox_level import SandboxLevel
from backend.settings import Settings, load_settings
from backend.storage.revision import current
from backend.storage.soundness import violations

LOW_DISK = 2 * 2**30
"""Bytes below which a run's weights and timelines may not find room: two VGG-16 in fp32."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `ok` None means: not needed for what works without it."""

    name: str
    ok: bool | None
    found: str
    advice: str = ""


def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Check every stored run and read every kept file.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Look at Python, torch, devices, port, Redis, database, disk, workers and sandbox.

    Ends with code 1 if something that is needed is missing, or, with --deep, where what is
    stored breaks a rule that must always hold.

    Examples:

        stageflow doctor

        stageflow doctor --deep

        stageflow doctor --json
    """
    settings = load_settings()
    findings = [_look(check, settings) for check in CHECKS]
    if deep:
        findings += _deep(settings)
    if as_json:
        print_json(findings)
    else:
        print_table(
            "",
            ["", "", "found", "what to do"],
            [[MARKS[f.ok], f.name, f.found, f.advice] for f in findings],
        )
    if any(finding.ok is False for finding in findings):
        sys.exit(1)


MARKS = {
    True: Text("ok", style="green"),
    False: Text("fault", style="red"),
    None: Text("note", style="yellow"),
}


def _look(check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except StageflowError as error:
        return Finding(check.__name__.strip("_"), False, str(error), error.advice)


def _deep(settings: Settings) -> list[Finding]:
    """One finding per broken rule."""
    try:
        broken = violations(connect(settings).database, settings)
    except StageflowError as error:
        return [Finding("stored", False, str(error), error.advice)]
    if not broken:
        return [Finding("stored", True, "every rule holds")]
    advice = "Keep a copy of the state directory and report it: this should not happen."
    return [Finding("stored", False, f"{one.rule}: {one.found}", advice) for one in broken]


def _python(_: Settings) -> Finding:
    return Finding("python", sys.version_info >= (3, 11), platform.python_version())


def _torch(_: Settings) -> Finding:
    try:
        return Finding("torch", True, version("torch"))
    except PackageNotFoundError:
        return Finding(
            "torch",
            None,
            "not installed",
            "Needed on worker nodes only: pip install 'stageflow[worker]'",
        )


def _alive(settings: Settings) -> list[Node]:
    return [node for node in connect(settings).nodes.list() if node.alive]


def _devices(settings: Settings) -> Finding:
    names = [device.name for node in _alive(settings) for device in node.devices]
    if not names:
        return Finding("devices", None, "none registered", "A node agent registers its devices.")
    return Finding(
        "devices", True, ", ".join(f"{names.count(n)} x {n}" for n in dict.fromkeys(names))
    )


def _pools(settings: Settings) -> Finding:
    pools = connect(settings).pools.list()
    if not pools:
        return Finding("pools", None, "none", "Only for clusters with a queue: `stageflow pool`.")
    faults = [
        f"{pool.name} {pool.fault or 'is silent'}" for pool in pools if pool.fault or not pool.alive
    ]
    free = ", ".join(
        f"{p.name}: {p.room.free} of {formats.count(p.room.total, 'device')} free" for p in pools
    )
    return Finding(
        "pools",
        not faults,
        "; ".join(faults) or free,
        "Start `stageflow pool` again where it ran, or mend the cluster.",
    )


def _port(settings: Settings) -> Finding:
    where = f"{settings.host}:{settings.port}"
    if launch.is_healthy(f"http://{where}"):
        return Finding("port", True, f"{where} is this dashboard")
    launch.check_port(settings.host, settings.port)
    return Finding("port", True, f"{where} is free")


def _redis(settings: Settings) -> Finding:
    if ping(settings):
        return Finding("redis", True, settings.broker_place)
    return Finding(
        "redis",
        None if settings.uses_embedded_redis else False,
        f"no answer at {settings.broker_place}",
        "`stageflow up` starts the embedded one."
        if settings.uses_embedded_redis
        else "Start it, or correct STAGEFLOW_REDIS_URL.",
    )


def _database(settings: Settings) -> Finding:
    now, head = current(settings)
    if now == head:
        return Finding("database", True, f"revision {now}")
    return Finding(
        "database", False, f"revision {now or 'none'}, needed {head}", "Run: stageflow db upgrade"
    )


def _disk(settings: Settings) -> Finding:
    places = {"STAGEFLOW_HOME": settings.home}
    if settings.shared:
        places["STAGEFLOW_SHARED"] = settings.shared_folder
    free = {name: _free(place) for name, place in places.items()}
    low = " or ".join(name for name, size in free.items() if size <= LOW_DISK)
    return Finding(
        "disk",
        not low,
        ", ".join(f"{formats.size(free[name])} free for {place}" for name, place in places.items()),
        f"Free some space, or point {low} elsewhere." if low else "",
    )


def _free(place: Path) -> int:
    """Bytes, on the disk where the folder is or will be."""
    return shutil.disk_usage(next(p for p in (place, *place.parents) if p.exists())).free


def _workers(settings: Settings) -> Finding:
    alive = [node.name for node in _alive(settings)]
    if alive:
        return Finding("workers", True, ", ".join(alive))
    return Finding("workers", None, "none alive", "Start one: stageflow up, or stageflow worker")


def _clocks(settings: Settings) -> Finding:
    """Compared with the database's, by which leases go."""
    alive = _alive(settings)
    off = [f"{node.name}: {formats.clock(node.ahead)}" for node in alive if node.is_off]
    if off:
        return Finding("clocks", None, ", ".join(off), "Set the clocks of these machines (NTP).")
    return Finding("clocks", True, f"{formats.count(len(alive), 'node')} with the database's time")


def _sandbox(settings: Settings) -> Finding:
    """What the agents have found out about their nodes; runs below the minimum are refused."""
    told = {node.name: node.versions.get("sandbox") for node in _alive(settings)}
    levels = {name: SandboxLevel(level) for name, level in told.items() if level}
    if not levels:
        here = shutil.which("bwrap") or "no bubblewrap on this machine"
        return Finding("sandbox", None, here, "A node agent tests it when it starts.")
    found = ", ".join(f"{name}: {level}" for name, level in levels.items())
    if all(level is SandboxLevel.BUBBLEWRAP for level in levels.values()):
        return Finding("sandbox", True, found)
    advice = (
        "Install bubblewrap on that node: without it uploaded code can read the agent's files and "
        "reach the network."
    )
    weak = [name for name, level in levels.items() if not level.reaches(settings.sandbox)]
    if weak:
        advice = f"Runs on {', '.join(weak)} are refused: they need {settings.sandbox}. {advice}"
    return Finding("sandbox", False if weak else None, found, advice)


CHECKS = (
    _python,
    _torch,
    _devices,
    _pools,
    _port,
    _redis,
    _database,
    _disk,
    _workers,
    _clocks,
    _sandbox,
)
