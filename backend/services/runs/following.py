"""Runs are followed in trackers: what is stored is read and sent on, apart from the run's work.

How far each run was sent is stored when its tracker has it: a process that ends in between sends
the same once more, which a tracker takes for what it is.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import time
from uuid import uuid4

from backend.comparison.runs import parameters
from backend.errors import StageflowError
from backend.runs.history.followed import Followed, Following, NamedPoint, TrackerPlace
from backend.runs.request.tracking import lease_of
from backend.runs.run import Run
from backend.services.runs.stores import Stores
from backend.trackers.tracker import RunGoneThere, Told, Tracker, TrackerRefuses

BATCH = 1000
"""Points that are sent at a time."""
MOST_TRIES = 12
PAUSE, LONGEST_PAUSE = 5.0, 600.0
"""Seconds before a failed sending is tried again: the first doubles up to the second."""
log = logging.getLogger(__name__)


class FollowingService:
    """`address` is the dashboard's URL. One process at a time follows in a tracker: who holds its
    lease, as `holder`, for so many seconds."""

    def __init__(
        self,
        stores: Stores,
        trackers: Mapping[str, Tracker],
        address: str,
        holder: str,
        lease: float = 300.0,
    ) -> None:
        self._stores, self._trackers = stores, trackers
        self._address, self._holder, self._lease = address, holder, lease

    def turn(self, name: str) -> int:
        """Look once after each run that is due in a tracker; how many were sent something."""
        if not self._holds(name):
            return 0
        due = self._stores.followed.due(name, time())
        return sum(self._holds(name) and self._one(each, self._trackers[name]) for each in due)

    def close(self) -> None:
        """Let another process send at once."""
        for name in self._trackers:
            self._stores.leases.drop(lease_of(name), self._holder)

    def _holds(self, name: str) -> bool:
        held = self._stores.leases.take(lease_of(name), self._holder, self._lease)
        return held == self._holder

    def _one(self, now: Followed, tracker: Tracker) -> bool:
        run = self._stores.runs.get(now.run_id)
        if run.started_at is None or (tracker.whole and not run.state.is_final):
            ended = Following.DONE if run.state.is_final else now.state
            self._stores.followed.change(now, replace(now, state=ended, due=time() + tracker.pause))
            return False
        try:
            after = self._sent(now, run, tracker)
        except RunGoneThere as fault:
            gone = Followed(now.run_id, now.tracker, uuid4().hex)  # asked again, it is a new one
            after = _failed(gone, fault)
        except TrackerRefuses as fault:
            after = _failed(now, fault)
        except StageflowError as fault:
            after = _tried(now, fault)
        except Exception as fault:  # of a library: its words may hold a secret
            log.exception("run %d: not sent to %s", run.id, tracker.name)
            what = f"{tracker.title}: {type(fault).__name__}"
            after = _tried(now, StageflowError(what, "The log of the process that sends says why."))
        return self._stores.followed.change(now, after) and after.sent > now.sent

    def _sent(self, now: Followed, run: Run, tracker: Tracker) -> Followed:
        """How far it is followed then. The state was read before the points: of an ended run all
        are there."""
        limit = None if tracker.whole else BATCH
        points = self._points(now, limit)
        is_last = run.state.is_final and (limit is None or len(points) < limit)
        later = time() + (tracker.pause if len(points) < BATCH else 0.0)
        if not (points or is_last) and now.place != TrackerPlace():
            return replace(now, tries=0, due=later, error="", advice="")
        place = tracker.send(self._told(now, run, points, is_last), now.place)
        return replace(
            now,
            state=Following.DONE if is_last else Following.ON,
            place=place,
            position=points[-1].id if points else now.position,
            sent=now.sent + len(points),
            steps=now.steps | {point.name: point.step for point in points},
            tries=0,
            due=later,
            error="",
            advice="",
        )

    def _points(self, now: Followed, limit: int | None) -> list[NamedPoint]:
        return list(self._every(now)) if limit is None else self._portion(now, now.position)

    def _every(self, now: Followed) -> Iterator[NamedPoint]:
        position = now.position
        while points := self._portion(now, position):
            yield from points
            position = points[-1].id

    def _portion(self, now: Followed, position: int) -> list[NamedPoint]:
        return list(self._stores.metrics.after(now.run_id, position, BATCH))

    def told(self, run: Run) -> Told:
        """The whole of a run, as a tracker is told it."""
        nothing = Followed(run.id, "", "stageflow")
        return self._told(nothing, run, list(self._every(nothing)), run.state.is_final)

    def _told(self, now: Followed, run: Run, points: list[NamedPoint], is_last: bool) -> Told:
        model = self._stores.definitions.get(run.spec.definition_id).label
        began = (run.started_at or run.created_at).timestamp()
        return Told(
            key=now.key,
            folder=f"run-{run.id}",
            title=run.name,
            page=f"{self._address}/run?id={run.id}",
            parameters={"model": model, **parameters(run.spec)},
            tags={
                "stageflow.run": str(run.id),
                "stageflow.url": f"{self._address}/run?id={run.id}",
                "stageflow.owner": run.owner,
                "stageflow.node": run.node or "",
            },
            labels=run.tags,
            points=points,
            first=now.sent,
            back_to=_back_to(now.steps, points),
            started=began,
            ended=run.state if is_last else None,
            finished=run.finished_at.timestamp() if run.finished_at else began,
        )


def _back_to(steps: Mapping[str, int], points: list[NamedPoint]) -> int | None:
    """The first step that was sent before, of any metric: its attempt went on from there."""
    again = [point.step for point in points if point.step <= steps.get(point.name, -1)]
    return min(again, default=None)


def _failed(now: Followed, fault: StageflowError) -> Followed:
    return replace(now, state=Following.FAILED, error=str(fault), advice=fault.advice)


def _tried(now: Followed, fault: StageflowError) -> Followed:
    tries = now.tries + 1
    if tries >= MOST_TRIES:
        given_up = f"{fault}: given up after {tries} tries"
        return _failed(replace(now, tries=tries), StageflowError(given_up, "Follow the run again."))
    due = time() + min(PAUSE * 2 ** (tries - 1), LONGEST_PAUSE)
    return replace(now, tries=tries, due=due, error=str(fault), advice=fault.advice)
