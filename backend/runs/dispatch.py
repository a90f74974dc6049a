"""The agents' side of runs: which one is whose turn, claimed by one node and given up."""

from collections.abc import Sequence
from contextlib import suppress
from uuid import uuid4

from backend.errors import InvalidInput, NotFound
from backend.runs.attempt import Attempt
from backend.runs.fairness import LOOKED_AT, in_turn
from backend.runs.nodes import Node
from backend.runs.placement import Share, shares, turn
from backend.runs.ports import Bell, Queue, QueueUnreachable, Stores
from backend.runs.recovery import give_up
from backend.runs.reservations import Summons
from backend.runs.run import Run
from backend.runs.spec import RunSpec, TrainSpec


class DispatchService:
    """`lease` in seconds."""

    def __init__(self, stores: Stores, queue: Queue, bell: Bell, lease: float) -> None:
        self._stores = stores
        self._queue = queue
        self._bell = bell
        self._lease = lease

    def claim(self, run_id: int, node: str) -> Attempt | None:
        """Take a queued run for `node`, with all other nodes that it needs; None where somebody
        else has it, it ended, another node leads it, or one that it needs is not free."""
        spec = self._stores.runs.asked(run_id)
        if spec is None:
            return None
        try:
            nodes = [share.node for share in self._shares(spec)]
        except InvalidInput:  # one of its nodes is away: see `why_waiting`
            return None
        if nodes and nodes[0] != node:
            return None
        token = uuid4().hex
        run = self._stores.runs.claim(run_id, node, token, self._lease, nodes[1:])
        return Attempt(run, token, self._stores, self._bell, self._lease) if run else None

    def waiting(self) -> Sequence[int]:
        """Ids of the queued runs, oldest first: what an agent looks for by itself."""
        return self._stores.runs.waiting()

    def expire(self) -> Sequence[int]:
        """Give up the live runs whose lease is over: each is queued again where it can go on
        by itself, and fails otherwise. Their ids. Any number of processes may do it at once:
        each run is given up by one."""
        stores, bell = self._stores, self._bell
        return [run.id for run in stores.runs.lost() if give_up(run, stores, bell)]

    def abandon(self, run_id: int, attempt: int, node: str) -> bool:
        """The agent of `node` that made this attempt is known to be dead: give the run up
        without waiting for its lease."""
        with suppress(NotFound):
            run = self._stores.runs.get(run_id)
            if run.state.is_live and (run.attempt, run.node) == (attempt, node):
                return give_up(run, self._stores, self._bell, at_once=True)
        return False

    def waiting_for(self, node: str) -> Sequence[int]:
        """Ids of the queued runs that `node` may try, in the order of fairness between their
        projects; none of a project that has as much as it may have at once."""
        loads = self._stores.loads
        first = in_turn(loads.waiting(LOOKED_AT), loads.loads())[:LOOKED_AT]
        queued = self._stores.runs.several([each.run_id for each in first])
        return turn(node, {run.id: run.spec for run in queued}, self._alive())

    def summon(self, run: Run, attempt: Attempt, address: str, port: int, secret: str) -> None:
        """Tell the other nodes of a run where to report, and wake them. Raises `LeaseLost`."""
        attempt.summon(address, port, secret)
        for share in shares(run.spec, self._alive())[1:]:
            with suppress(QueueUnreachable):
                self._queue.publish(run.id, share.node)

    def summons(self, node: str) -> Summons | None:
        """Which run `node` is to take a share of."""
        return self._stores.reservations.summons(node)

    def answer(self, summons: Summons, node: str) -> bool:
        """`node` takes its share; False where it has."""
        return self._stores.reservations.answered(summons, node)

    def shares(self, spec: RunSpec) -> Sequence[Share]:
        """Which ranks run on which of the nodes that `spec` names; () where it names none.
        Raises `InvalidInput` where they do not fit."""
        return shares(spec, self._stores.nodes.list(self._lease))

    def _shares(self, spec: RunSpec) -> Sequence[Share]:
        """Among the nodes that are alive, which only a run that names some has to know."""
        named = isinstance(spec, TrainSpec) and spec.nodes
        return shares(spec, self._alive()) if named else ()

    def _alive(self) -> Sequence[Node]:
        return [node for node in self._stores.nodes.list(self._lease) if node.alive]
