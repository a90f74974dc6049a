"""The composition root: which store, queue and clock the services stand on."""

import socket

from backend.notifications.notifier import Notifier
from backend.people.rights import Actor, operator
from backend.queue.client import CeleryQueue
from backend.services.clusters import ClusterService
from backend.services.definitions import DefinitionService
from backend.services.links import LinkService
from backend.services.people.access import Access, AuditService
from backend.services.people.accounts import AccountService
from backend.services.people.notices import Addressees, NoticeService
from backend.services.people.projects import ProjectService
from backend.services.people.team import TeamService, TokenService
from backend.services.runs.comments import CommentService
from backend.services.runs.dispatch import DispatchService
from backend.services.runs.following import FollowingService
from backend.services.runs.importing import ImportService
from backend.services.runs.labels import LabelService
from backend.services.runs.plans import PlanService
from backend.services.runs.pools import PoolService
from backend.services.runs.profiles import ProfileService
from backend.services.runs.retention import RetentionService
from backend.services.runs.runs import RunService
from backend.services.runs.stores import Stores
from backend.services.runs.sweeps import SweepService
from backend.services.runs.trackers import TrackerService
from backend.services.runs.views import ViewService
from backend.settings import Settings, load_settings
from backend.storage.database import Database, open_engine
from backend.storage.nodes.links import SqlLinks
from backend.storage.people.audit import SqlAuditLog
from backend.storage.people.keys import SqlKeys
from backend.storage.people.notices import SqlNotices
from backend.storage.people.people import SqlPeople
from backend.storage.people.projects import SqlProjects
from backend.storage.revision import check
from backend.storage.runs.brought import SqlBrought
from backend.storage.runs.comments import SqlComments
from backend.storage.runs.retention import SqlClearing
from backend.storage.runs.views import SqlViews
from backend.trackers.catalog import trackers_of


class Backend:
    """Everything that pages, commands and agents call, in the name of `actor`, who sees their own
    projects and has chosen one of them (None: lists show all). `database` and `queue` are there to
    compose it anew for another one."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        queue: CeleryQueue,
        notifier: Notifier,
        actor: Actor,
        project: int | None = None,
    ) -> None:
        seen = database.restricted_to(actor.visible)
        chosen = seen if project is None else database.restricted_to(_one(actor, project))
        stores, listed = Stores(settings, seen), Stores(settings, chosen)
        whole, place = Stores(settings, database), place_of(settings)  # agents see everything
        people, keys, log = SqlPeople(database), SqlKeys(database), SqlAuditLog(database)
        projects = SqlProjects(seen)
        self.settings, self.actor, self.database = settings, actor, database
        self.queue, self.notifier = queue, notifier
        self.access = access = Access(actor, log, project)
        self.definitions = DefinitionService(stores.definitions, listed.definitions, access)
        self.profiles = ProfileService(stores.profiles, listed.profiles, stores.definitions, access)
        self.plans = PlanService(stores.plans, listed.plans, stores.profiles, access)
        self.clusters = ClusterService(stores.clusters, listed.clusters, access)
        self.runs = RunService(stores, listed.runs, queue, notifier, settings.node, access)
        self.sweeps = SweepService(stores, listed.sweeps, self.runs, access)
        self.dispatch = DispatchService(whole, queue, notifier, settings.lease, place)
        self.following = FollowingService(whole, trackers_of(settings), settings.address, place)
        self.pools = PoolService(whole, notifier, settings.lease, place)
        self.trackers = TrackerService(stores, trackers_of(settings), access)
        self.imports = ImportService(SqlBrought(seen), stores, self.trackers.known, access)
        self.labels = LabelService(stores.labels, listed.labels, access)
        self.comments = CommentService(SqlComments(seen), stores.runs, access)
        self.views = ViewService(SqlViews(seen), SqlViews(chosen), access)
        self.nodes, self.use = stores.nodes, stores.use
        self.links = LinkService(SqlLinks(database), queue, access)
        self.accounts = AccountService(people, keys, log)
        self.team = TeamService(people, keys, access)
        self.tokens = TokenService(keys, access)
        self.projects = ProjectService(projects, people, access)
        self.retention = RetentionService(projects, SqlClearing(seen), stores.checkpoints, access)
        self.audit = AuditService(access)
        takes_mail = bool(settings.notify_mail)
        self.notices = NoticeService(SqlNotices(seen), notifier, access, takes_mail)

    def acting(self, actor: Actor, project: int | None = None) -> "Backend":
        """The same services, on the same connections, for somebody else, who has chosen one of
        their projects (None: lists show all of them)."""
        if (actor, project) == (self.actor, self.access.project):
            return self
        return Backend(self.settings, self.database, self.queue, self.notifier, actor, project)

    def within(self, project: int) -> "Backend":
        """The same for one project alone. Raises `NotFound` where the actor does not see it."""
        return self.acting(self.actor, self.projects.get(project).id)

    def close(self) -> None:
        """Let the last notifications out and give back every database connection."""
        self.notifier.close()
        self.database.close()


def connect(settings: Settings | None = None) -> Backend:
    """Open the database and compose the services; Redis is not needed for that. Whoever
    connects holds the machine, and may do everything.
    Raises `SchemaOutdated`, `DatabaseUnreachable`, `StorageFull`, `InvalidInput`."""
    settings = settings or load_settings()
    engine = open_engine(settings)
    try:
        check(engine)
    except BaseException:
        engine.dispose()
        raise
    database = Database(engine)
    places = Addressees(SqlNotices(database), SqlPeople(database), settings.user)
    queue, notifier = CeleryQueue(settings), Notifier(settings, places)
    return Backend(settings, database, queue, notifier, operator(settings.user))


def _one(actor: Actor, project: int) -> frozenset[int]:
    """Nothing where it is not theirs."""
    return frozenset({project} if actor.visible is None or project in actor.visible else ())


def place_of(settings: Settings) -> str:
    """Which agent this is, if it is one: of a name no two live in a home."""
    return f"{settings.node} in {settings.home} on {socket.gethostname()}"
