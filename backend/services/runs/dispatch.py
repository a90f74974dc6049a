"""The agents' side of runs: which one is whose turn, claimed by one node and given up."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import uuid4

from backend.errors import InvalidInput, NotFound
from backend.notifications.notifier import Notifier
from backend.queue.client import CeleryQueue
from backend.queue.messages import QueueUnreachable
from backend.runs.attempts.fence import Fence, LeaseLost
from backend.runs.dispatch.leases import REAPER
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import shares_on
from backend.runs.pools.agents import agents_of
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.services.runs.attempt import Attempt
from backend.services.runs.early_stopping import tend
from backend.services.runs.line import in_line
from backend.services.runs.recovery import give_up
from backend.services.runs.stand_in import placed
from backend.services.runs.stores import Stores
from backend.services.runs.survival import fallback_in
from backend.storage.nodes.reservations import SqlReservations
from backend.storage.runs.claims import Claim


@dataclass(frozen=True)
class DispatchService:
    """`lease` in seconds; `place` tells this agent from all others."""

    _stores: Stores
    _queue: CeleryQueue
    _notifier: Notifier
    _lease: float
    _place: str = ""

    @property
    def reservations(self) -> SqlReservations:
        """Which share of a run a node is asked to take, and whether it has."""
        return self._stores.reservations

    def go_by(self, node: str) -> None:
        """Be the agent of that name, for a lease. Raises `NodeTaken` where another one is."""
        self._stores.leases.hold(
            f"node {node}",
            self._place,
            self._lease,
            f"the name {node} belongs to the agent of",
            "Set another STAGEFLOW_NODE for this agent, or stop the other one",
        )

    def leave(self, node: str) -> None:
        """The agent of that name ends: nobody need wait for its leases."""
        for name in (f"node {node}", REAPER):
            self._stores.leases.drop(name, self._place)

    def claim(self, run_id: int, node: str) -> Attempt | None:
        """Take a queued run for `node`, with devices of all nodes that it needs, which the
        attempt's own spec names; None where somebody else has it, it ended, another node leads
        it, or devices that it needs are not free."""
        spec, fallback = self._stores.runs.asked(run_id), None
        if spec is None:
            return None
        names = agents_of(run_id, spec)
        if names and node not in names:
            return None
        if names and isinstance(spec, TrainSpec):
            spec = replace(spec, nodes=names)
        elif isinstance(spec, TrainSpec) and spec.nodes:
            (queued,) = self._stores.runs.several([run_id]) or (None,)
            if queued is None:
                return None
            spec = placed(queued, self._stores, node)
            fallback = fallback_in(queued, spec)
        try:
            found = shares_on(node, spec, self._named(run_id, spec))
        except InvalidInput:  # one of its nodes is away: see `why_waiting`
            return None
        if found[0].node != node:
            return None
        token = uuid4().hex
        claimed = self._stores.runs.claim(
            Claim(run_id, token, self._lease, found, spec.whole_nodes, fallback)
        )
        if claimed is None:
            return None
        run, held = claimed
        run = replace(run, spec=spec)
        return Attempt(run, token, self._stores, self._notifier, self._lease, held)

    def holding(self, fence: Fence) -> Attempt:
        """The attempt of an agent that died, for what it had not written. Raises `LeaseLost`
        where it holds the run no longer, and `NotFound`."""
        run = self._stores.runs.get(fence.run_id)
        if run.attempt != fence.attempt or not run.state.is_live:
            raise LeaseLost(f"attempt {fence.attempt} no longer holds run {fence.run_id}")
        return Attempt(run, fence.token, self._stores, self._notifier, self._lease)

    def expire(self) -> Sequence[int]:
        """Give up the live runs whose lease is over: each is queued again where it can go on
        by itself, and fails otherwise. Their ids. Sweeps end what they may end early. One process
        at a time does it, by a lease; should two, each run is given up by one all the same."""
        stores, notifier = self._stores, self._notifier
        if stores.leases.take(REAPER, self._place, self._lease / 2) != self._place:
            return []
        tend(stores)
        return [run.id for run in stores.runs.lost() if give_up(run, stores, notifier)]

    def abandon(self, run_id: int, attempt: int, node: str) -> bool:
        """The agent of `node` that made this attempt is known to be dead: give the run up
        without waiting for its lease."""
        with suppress(NotFound):
            run = self._stores.runs.get(run_id)
            if run.state.is_live and (run.attempt, run.node) == (attempt, node):
                return give_up(run, self._stores, self._notifier, at_once=True)
        return False

    def waiting_for(self, node: str) -> Sequence[int]:
        """Ids of the queued runs that `node` may start now, in the order of fairness between
        their projects; none of a project that has as much as it may have at once."""
        found = in_line(self._stores, node).turns.values()
        return [turn.run_id for turn in found if turn.seconds == 0 and turn.nodes[0] == node]

    def summon(self, attempt: Attempt, address: str, port: int, secret: str) -> None:
        """Tell the other nodes of a run where to report, and wake them. Raises `LeaseLost`."""
        attempt.summon(address, port, secret)
        for share in attempt.shares[1:]:
            with suppress(QueueUnreachable):
                self._queue.publish(attempt.run.id, share.node)

    def devices(self, run_id: int, attempt: int, node: str) -> Sequence[int]:
        """Those of `node` that an attempt holds."""
        return self._stores.holdings.of_attempt(run_id, attempt).get(node, ())

    def _named(self, run_id: int, spec: RunSpec) -> Sequence[Node]:
        """The nodes that are alive, which only a run that names some has to know."""
        named = isinstance(spec, TrainSpec) and spec.nodes
        return self._stores.nodes.alive(run_id) if named else ()
