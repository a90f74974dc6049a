"""Environment variables (`STAGEFLOW_*`) to one typed value."""

import getpass
import hashlib
import os
import socket
import tempfile
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote, urlsplit

from platformdirs import user_state_path
from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from backend.errors import InvalidInput
from backend.sandbox_level import SandboxLevel
from backend.setting_files import PREFIX, from_files, shown
from backend.setting_values import (
    Amount,
    Seconds,
    absolute,
    folder,
    folders,
    tracker_addresses,
    url,
)

MAX_SOCKET_BYTES = 100
"""A unix socket's path may have 107 bytes on Linux and 103 on macOS; Redis adds none."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
"""Addresses that this machine alone can reach."""
EVERYWHERE = frozenset({"0.0.0.0", "::", ""})
"""Not an address but all of the machine's."""


class SignIn(StrEnum):
    """OFF: whoever reaches the dashboard may do everything. ACCOUNTS: people with passwords."""

    OFF = "off"
    ACCOUNTS = "accounts"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return ""


class Settings(BaseSettings):
    """Where things are. Every field can be set as STAGEFLOW_<FIELD>, or as a file of a folder.
    Fields without `repr` may hold a secret: no message shows them.

    home          state directory: database, Redis, run folders; one host's own
    shared        what the hosts of one database share: checkpoints, artifacts, spools; empty =
                  in `home`
    database_url  SQLAlchemy URL; empty = SQLite in `home`
    redis_url     Redis of one's own; empty = the embedded server in `home`
    node          this machine's name as a node agent
    node_address  where the ranks of other nodes reach this one's; empty = as this machine is
                  known on the network it leads to the outside by
    host, port    address of the dashboard
    public_url    where people reach the dashboard, for links in notifications
    sign_in       how people come in: off (on a loopback address alone) or accounts
    oidc_*        an OpenID Connect provider beside the passwords: issuer, client id and secret,
                  and the role with which people join whom nobody has invited (empty = none)
    user          who owns what is submitted where nobody signs in, and on the command line
    api_token     what a client of the REST API must present where nobody signs in
    token         a person's token, in whose name the command line acts; empty = whoever holds
                  the machine
    project       the project in which the command line works, by name or number; empty = all,
                  and what is added goes into the first
    rate          requests of the REST API, and tries to sign in, of a caller a minute; 0 = any
    notify        where to tell that a run has ended: Apprise URLs, separated by spaces
    notify_mail   the Apprise URL of the mail server by which people are told; empty = no mail
    notify_internal  hosts, addresses and networks inside that may be told, separated by spaces;
                  otherwise notifications go to the internet alone
    trackers      experiment trackers in which runs are followed: addresses (guide/trackers.md),
                  separated by spaces
    track         which runs are: all but those whose people say no, or only those that are chosen
    heartbeat     seconds between an agent's signs of life
    lease         seconds without one after which a run counts as lost
    stall         seconds within which a rank that works must finish an action, or it counts as
                  hung
    build         seconds within which a run's model must be made and traced
    sandbox       the weakest sandbox in which a run may be carried
    devices       how many devices a node without GPUs has; 0 = one for each of its cores
    data          folders whose files runs on this node may read, separated by the system's path
                  separator (":"); empty = none
    max_*         what runs may use on a node (docs/guide/sandbox.md): seconds, bytes of memory (0
                  = four fifths of the machine's), processes and threads, bytes of a file, bytes and
                  number of its folder's. Memory and bytes are shared as the devices are
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    home: Annotated[Path, AfterValidator(absolute)] = Field(
        default_factory=lambda: user_state_path("stageflow")
    )
    shared: Annotated[str, AfterValidator(folder)] = ""
    database_url: str = Field(default="", repr=False)
    redis_url: Annotated[str, AfterValidator(url)] = Field(default="", repr=False)
    node: str = Field(default_factory=socket.gethostname, min_length=1)
    node_address: str = ""
    host: str = "127.0.0.1"
    port: int = Field(default=8501, ge=0, le=65535)
    public_url: Annotated[str, AfterValidator(url)] = ""
    sign_in: SignIn = SignIn.OFF
    oidc_issuer: Annotated[str, AfterValidator(url)] = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = Field(default="", repr=False)
    oidc_newcomers: str = Field(default="", pattern="^(guest|viewer|editor)?$")
    user: str = Field(default_factory=_user)
    api_token: str = Field(default="", repr=False)
    token: str = Field(default="", repr=False)
    project: str = ""
    rate: int = Field(default=1200, ge=0)
    notify: str = Field(default="", repr=False)
    notify_mail: str = Field(default="", repr=False)
    notify_internal: str = ""
    trackers: Annotated[str, AfterValidator(tracker_addresses)] = Field(default="", repr=False)
    track: Literal["all", "chosen"] = "all"
    heartbeat: Seconds = 5.0
    lease: Seconds = 30.0
    stall: Seconds = 600.0
    build: Seconds = 300.0
    sandbox: SandboxLevel = SandboxLevel.LIMITS
    devices: int = Field(default=0, ge=0, le=4096)
    data: Annotated[str, AfterValidator(folders)] = ""
    max_seconds: Seconds = 7 * 24 * 3600.0
    max_memory: int = Field(default=0, ge=0, le=2**62)
    max_processes: Amount = 1024
    max_file: Amount = 32 * 1024**3
    max_disk: Amount = 128 * 1024**3
    max_files: Amount = 100_000

    @property
    def sqlite_file(self) -> Path:
        """The database where no `database_url` is given."""
        return self.home / "stageflow.db"

    @property
    def sql_url(self) -> str:
        """Which database it is, as one string."""
        return self.database_url or f"sqlite:///{self.sqlite_file}"

    @property
    def redis_folder(self) -> Path:
        """Where the embedded Redis keeps its append-only file, log and pid."""
        return self.home / "redis"

    @property
    def redis_socket(self) -> Path:
        """The embedded server's socket: in `home`, or, where that path is too long for a
        socket, in a private directory of the system's temporary one, named after `home`."""
        socket_file = self.redis_folder / "redis.sock"
        if len(os.fsencode(socket_file)) < MAX_SOCKET_BYTES:
            return socket_file
        name = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"stageflow-{name}" / "redis.sock"

    @property
    def local_address(self) -> str:
        """The dashboard's URL on this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def address(self) -> str:
        """The dashboard's URL for people."""
        return self.public_url.rstrip("/") or self.local_address

    @property
    def is_local(self) -> bool:
        """Whether the dashboard can be reached from this machine alone."""
        return self.host in LOOPBACK

    @property
    def is_secure(self) -> bool:
        """Whether people reach the dashboard over TLS."""
        return self.public_url.startswith("https://")

    @property
    def broker_url(self) -> str:
        """The URL that Celery connects to."""
        return self.redis_url or f"redis+socket://{quote(str(self.redis_socket))}?virtual_host=0"

    @property
    def broker_place(self) -> str:
        """Where Redis should answer, for people: without its password."""
        if not self.redis_url:
            return str(self.redis_socket)
        url = urlsplit(self.redis_url)
        return f"{url.hostname}:{url.port or 6379}" if url.hostname else url.path

    @property
    def uses_embedded_redis(self) -> bool:
        return not self.redis_url

    @property
    def data_folders(self) -> tuple[Path, ...]:
        """Where data for runs may lie on this node."""
        return tuple(absolute(Path(part)) for part in self.data.split(os.pathsep) if part)

    @property
    def hub_folder(self) -> Path:
        """Data sets that were brought from the hub, by name."""
        return self.home / "hub"

    @property
    def shared_folder(self) -> Path:
        """Where the next three are, on every host."""
        return Path(self.shared) if self.shared else self.home

    @property
    def artifacts_folder(self) -> Path:
        """Files kept with runs, each named by the SHA-256 of its content."""
        return self.shared_folder / "artifacts"

    @property
    def checkpoints_folder(self) -> Path:
        """Checkpoints of trainings, a folder for each."""
        return self.shared_folder / "checkpoints"

    @property
    def spool_folder(self) -> Path:
        """What the agents of this name have not told the database: no two live at once."""
        return self.shared_folder / "spool" / quote(self.node, safe="")

    def run_folder(self, run_id: int, attempt: int) -> Path:
        return self.home / "runs" / str(run_id) / f"attempt-{attempt}"


def load_settings() -> Settings:
    """Read the environment; raises `InvalidInput` naming the first faulty variable."""
    decisive = ("HOME", "XDG_STATE_HOME")  # where the state directory is by default
    names = [name for name in os.environ if name.upper().startswith(PREFIX) or name in decisive]
    return _read(tuple((name, os.environ[name]) for name in sorted(names)))


@lru_cache(maxsize=16)
def _read(_variables: tuple[tuple[str, str], ...]) -> Settings:
    """Once for the same variables: pages and API ask at every turn."""
    try:
        return Settings(**from_files(Settings.model_fields))
    except ValidationError as fault:
        raise _faulty(fault.errors()[0]) from None


def _faulty(error: ErrorDetails) -> InvalidInput:
    field = str(error["loc"][0])
    name = f"{PREFIX}{field.upper()}"
    value = f"={shown(error['input'])}" if Settings.model_fields[field].repr else ""
    return InvalidInput(
        f"{name}{value}: {error['msg']}", f"Set {name} to a proper value or unset it."
    )
