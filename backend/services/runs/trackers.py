"""Where runs are followed, and people who choose that."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from backend.people.rights import Right
from backend.runs.history.followed import Followed, Following
from backend.runs.request.tracking import lease_of
from backend.services.people.access import Access
from backend.services.runs.stores import Stores
from backend.trackers.tracker import Tracker


class TrackerService:
    """`known` are the trackers that settings name."""

    def __init__(self, stores: Stores, known: Mapping[str, Tracker], access: Access) -> None:
        self._stores, self._access = stores, access
        self.known = known
        self.usual = stores.tracking.usual

    def is_served(self, name: str) -> bool:
        """Whether some process sends to it."""
        return self._stores.leases.is_held(lease_of(name))

    def list(self, run_id: int) -> Sequence[Followed]:
        """Where a run is followed, and how that goes. Raises `NotFound`."""
        self._stores.runs.get(run_id)
        return self._stores.followed.list(run_id)

    def follow(self, run_id: int, name: str) -> Followed:
        """Send a run to a tracker from its first point on, or go on where that was given up or
        stopped. Raises `NotFound`, `InvalidInput` where it is not set up."""
        self._require("follow", run_id)
        self._stores.tracking.check(name)
        self._stores.followed.begin(run_id, [name])
        now = self._stores.followed.get(run_id, name)
        if now.state in (Following.FAILED, Following.OFF):
            on = replace(now, state=Following.ON, tries=0, due=0.0, error="", advice="")
            self._stores.followed.change(now, on)
        return self._stores.followed.get(run_id, name)

    def stop(self, run_id: int, name: str) -> Followed:
        """Send no more of it; what the tracker has stays there. Raises `NotFound`,
        `NotFollowed`."""
        self._require("stop following", run_id)
        now = self._stores.followed.get(run_id, name)
        if now.state is Following.ON:
            self._stores.followed.change(now, replace(now, state=Following.OFF))
        return self._stores.followed.get(run_id, name)

    def _require(self, action: str, run_id: int) -> None:
        project = self._stores.runs.get(run_id).project_id
        self._access.require(Right.EDIT, action, f"run {run_id}", project)
