"""The composition root: which store, queue and clock the services stand on."""

from dataclasses import dataclass

from backend.definitions.service import DefinitionService
from backend.notifications.bell import bell_for
from backend.queue.client import CeleryQueue
from backend.runs.labels import LabelService
from backend.runs.nodes import NodeService
from backend.runs.plans import PlanService
from backend.runs.ports import Bell, Queue, Stores
from backend.runs.profiles import ProfileService
from backend.runs.service import RunService
from backend.settings import Settings, load_settings
from backend.storage import schema
from backend.storage.artifacts import SqlArtifacts
from backend.storage.checkpoints import SqlCheckpoints
from backend.storage.database import Database, open_engine
from backend.storage.definitions import SqlDefinitions
from backend.storage.labels import SqlLabels
from backend.storage.logs import SqlLogs
from backend.storage.metrics import SqlMetrics
from backend.storage.nodes import SqlNodes
from backend.storage.plans import SqlPlans
from backend.storage.profiles import SqlProfiles
from backend.storage.runs import SqlRuns
from backend.storage.spans import SqlSpans


@dataclass(frozen=True, slots=True)
class Backend:
    """Everything that pages, commands and agents call. `database` is there to be closed."""

    settings: Settings
    definitions: DefinitionService
    profiles: ProfileService
    plans: PlanService
    runs: RunService
    labels: LabelService
    nodes: NodeService
    database: Database
    bell: Bell

    def close(self) -> None:
        """Let the last notifications out and give back every database connection."""
        self.bell.close()
        self.database.close()


def connect(settings: Settings | None = None) -> Backend:
    """Open the database and compose the services; Redis is not needed for that.
    Raises `SchemaOutdated`, `DatabaseUnreachable`, `StorageFull`, `InvalidInput`."""
    settings = settings or load_settings()
    engine = open_engine(settings)
    try:
        schema.check(engine)
    except BaseException:
        engine.dispose()
        raise
    return compose(settings, Database(engine), CeleryQueue(settings))


def compose(settings: Settings, database: Database, queue: Queue) -> Backend:
    """The services on a given database and queue."""
    stores = stores_on(settings, database)
    bell = bell_for(settings)
    return Backend(
        settings=settings,
        definitions=DefinitionService(stores.definitions),
        profiles=ProfileService(stores.profiles),
        plans=PlanService(stores.plans),
        runs=RunService(stores, queue, bell, settings.node, settings.lease, settings.user),
        labels=LabelService(stores.labels),
        nodes=NodeService(stores.nodes, settings.lease),
        database=database,
        bell=bell,
    )


def stores_on(settings: Settings, database: Database) -> Stores:
    """The SQL stores, and the artifacts' folder in the settings' home."""
    return Stores(
        definitions=SqlDefinitions(database),
        profiles=SqlProfiles(database),
        plans=SqlPlans(database),
        runs=SqlRuns(database),
        logs=SqlLogs(database),
        metrics=SqlMetrics(database),
        spans=SqlSpans(database),
        artifacts=SqlArtifacts(database, settings.artifacts_folder),
        nodes=SqlNodes(database),
        labels=SqlLabels(database),
        checkpoints=SqlCheckpoints(database, settings.checkpoints_folder),
    )
