"""The stores that runs are made of."""

from backend.runs.request.tracking import Tracking
from backend.setting_values import tracker_kind
from backend.settings import Settings
from backend.storage.clusters import SqlClusters
from backend.storage.database import Database
from backend.storage.definitions import SqlDefinitions
from backend.storage.nodes.holdings import SqlHoldings
from backend.storage.nodes.leases import SqlLeases
from backend.storage.nodes.loads import SqlLoads
from backend.storage.nodes.nodes import SqlNodes
from backend.storage.nodes.pools import SqlJobs, SqlPools
from backend.storage.nodes.reservations import SqlReservations
from backend.storage.plans import SqlPlans
from backend.storage.profiles import SqlProfiles
from backend.storage.runs.artifacts import SqlArtifacts
from backend.storage.runs.checkpoints import SqlCheckpoints
from backend.storage.runs.followed import SqlFollowed
from backend.storage.runs.labels import SqlLabels
from backend.storage.runs.logs import SqlLogs
from backend.storage.runs.metrics import SqlMetrics
from backend.storage.runs.runs import SqlRuns
from backend.storage.runs.spans import SqlSpans
from backend.storage.runs.sweeps import SqlSweeps
from backend.storage.use import SqlUse


class Stores:
    """All on one database, with the files in the settings' home.

    Methods that take a `Fence` change something only while that attempt holds the run, and raise
    `LeaseLost` otherwise. Their `batch` numbers the writes of an attempt from 1: one that comes
    again changes nothing; 0 = not numbered.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        self.definitions = SqlDefinitions(database)
        self.profiles = SqlProfiles(database)
        self.plans = SqlPlans(database)
        self.clusters = SqlClusters(database)
        self.runs = SqlRuns(database)
        self.sweeps = SqlSweeps(database)
        self.logs = SqlLogs(database)
        self.metrics = SqlMetrics(database)
        self.spans = SqlSpans(database)
        self.use = SqlUse(database)
        self.artifacts = SqlArtifacts(database, settings.artifacts_folder)
        self.nodes = SqlNodes(database, settings.lease)
        self.holdings = SqlHoldings(database)
        self.reservations = SqlReservations(database)
        self.labels = SqlLabels(database)
        self.checkpoints = SqlCheckpoints(database, settings.checkpoints_folder)
        self.followed = SqlFollowed(database)
        kinds = tuple(map(tracker_kind, settings.trackers.split()))
        self.tracking = Tracking(kinds, settings.track == "all")
        self.loads = SqlLoads(database)
        self.leases = SqlLeases(database)
        self.pools = SqlPools(database, settings.lease)
        self.jobs = SqlJobs(database)
