"""Which ranks of a run sit on which node, where it asks for several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from backend.errors import InvalidInput
from backend.runs.dispatch.nodes import Node
from backend.runs.request.spec import RunSpec, TrainSpec


@dataclass(frozen=True, slots=True)
class Share:
    """`ranks` of a run on one node, and the number that each one's device has there."""

    node: str
    ranks: tuple[int, ...]
    devices: tuple[int, ...]


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
    partition = spec.plan.partition
    placed = partition.stages[: partition.pipeline_size]
    devices = [device for stage in placed for device in stage.devices] * spec.plan.num_pipelines
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


def turn(node: str, queued: Mapping[int, RunSpec], alive: Sequence[Node]) -> list[int]:
    """Ids of the `queued` runs that `node` may lead, in their order. None comes after a run on
    several nodes that needs this one: its nodes must come to be free at the same time. One
    whose nodes are not all alive holds nobody up."""
    found = []
    for run_id, spec in queued.items():
        try:
            needed = [share.node for share in shares(spec, alive)]
        except InvalidInput:
            continue
        if not needed or needed[0] == node:
            found.append(run_id)
        if node in needed:
            break
    return found


def _counts(names: Sequence[str], nodes: Mapping[str, Node]) -> list[int]:
    if len(set(names)) < len(names):
        raise InvalidInput(f"a node is named twice: {', '.join(names)}", "Name each node once.")
    for name in names:
        if name not in nodes:
            known = ", ".join(sorted(nodes)) or "none"
            raise InvalidInput(
                f"no node {name!r} is registered", f"There are: {known}. See `stageflow doctor`."
            )
    return [len(nodes[name].devices) for name in names]
