"""Which ranks of a run sit on which devices of which node."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from backend.cluster.cluster import Device
from backend.errors import InvalidInput
from backend.runs.dispatch.nodes import Node
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec

ENOUGH = 0.99
"""The share of a device's memory that will do: machines of one kind differ by some megabytes."""


@dataclass(frozen=True, slots=True)
class Share:
    """`ranks` of a run on one node, and the number that each one's device has there. `held`: all
    devices of the node that the run holds, once it is claimed."""

    node: str
    ranks: tuple[int, ...]
    devices: tuple[int, ...]
    held: tuple[int, ...] = ()


def world_size(spec: RunSpec) -> int:
    """One process measures; a plan trains with one per device and parallel pipeline."""
    match spec:
        case ProfileSpec():
            return 1
        case TrainSpec():
            return spec.plan.partition.num_devices * spec.plan.num_pipelines


def shares(spec: RunSpec, nodes: Sequence[Node]) -> tuple[Share, ...]:
    """A share for each of the nodes that `spec` names and uses, that of rank 0 first; () where
    it names none. The plan's devices are numbered through, node by node as they are named.

    Raises `InvalidInput` where a node is not registered, named twice, or their devices are too
    few; the message names the numbers.
    """
    if not isinstance(spec, TrainSpec) or not spec.nodes:
        return ()
    counts = _counts(spec.nodes, {node.name: node for node in nodes})
    firsts = (0, *accumulate(counts))
    devices = spec.plan.devices
    if max(devices) >= firsts[-1]:
        named = ", ".join(f"{n} ({count})" for n, count in zip(spec.nodes, counts, strict=True))
        raise InvalidInput(
            f"the plan uses {max(devices) + 1} devices, but {named} have {firsts[-1]}",
            "Choose more nodes, or plan for the cluster of these nodes.",
        )
    found = []
    for number, name in enumerate(spec.nodes):
        first, stop = firsts[number], firsts[number + 1]
        ranks = tuple(rank for rank, device in enumerate(devices) if first <= device < stop)
        if ranks:
            found.append(Share(name, ranks, tuple(devices[rank] - first for rank in ranks)))
    return tuple(sorted(found, key=lambda share: share.ranks[0]))


def shares_on(node: str, spec: RunSpec, nodes: Sequence[Node]) -> tuple[Share, ...]:
    """The shares of a run that `node` would like to lead: where `spec` names none, all its ranks
    there, each on a device of its own. Raises `InvalidInput` as `shares` does."""
    everybody = tuple(range(world_size(spec)))
    return shares(spec, nodes) or (Share(node, everybody, everybody),)


def settled(
    share: Share, devices: Sequence[Device], taken: Collection[int], whole: bool = False
) -> Share | None:
    """The share on devices that nobody has `taken`, of the `devices` of its node: each as it is
    asked for, else one of the same kind. None where they are not free.

    A share that needs more devices than the node has holds all of them, and its ranks share
    them; so it does where it shall have the `whole` node. Of a node that has not said what it
    has (no devices) everything is believed.
    """
    asked, count = sorted(set(share.devices)), len(devices)
    if count and (whole or asked[-1] >= count):
        there = tuple(range(count))
        shared = tuple(device % count for device in share.devices)
        return None if taken else replace(share, devices=shared, held=there)
    own = {device: device for device in asked if device not in taken}
    spare = [d for d in _numbers(count, asked, taken) if d not in taken and d not in own]
    for device in asked:
        if device in own:
            continue
        found = next((d for d in spare if not count or does(devices[d], devices[device])), None)
        if found is None:
            return None
        spare.remove(found)
        own[device] = found
    placed = tuple(own[device] for device in share.devices)
    return replace(share, devices=placed, held=tuple(sorted(own.values())))


def does(one: Device, other: Device) -> bool:
    """Would `one` do in the place of `other`?"""
    enough = other.memory is None or (one.memory or 0.0) >= ENOUGH * other.memory
    return (one.name, one.speed) == (other.name, other.speed) and enough


def _numbers(count: int, asked: Sequence[int], taken: Collection[int]) -> Iterator[int]:
    """Of a node's devices; as many as may be needed where nobody knows how many it has."""
    enough = max((*asked, *taken)) + 1 + len(asked)
    yield from range(count or enough)


def _counts(names: Sequence[str], nodes: Mapping[str, Node]) -> list[int]:
    if len(set(names)) < len(names):
        raise InvalidInput(f"a node is named twice: {', '.join(names)}", "Name each node once.")
    for name in names:
        if name not in nodes:
            known = f"Choose one of: {', '.join(sorted(nodes))}." if nodes else "There is none yet."
            raise InvalidInput(f"no node {name!r} is registered", known)
    return [len(nodes[name].devices) for name in names]
