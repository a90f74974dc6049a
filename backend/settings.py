"""Environment variables (`STAGEFLOW_*`) to one typed value."""

import socket
from pathlib import Path

from platformdirs import user_state_path
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Where things are. Every field can be set as STAGEFLOW_<FIELD>.

    home          state directory: database, Redis socket, run folders
    database_url  SQLAlchemy URL; empty = SQLite in `home`
    redis_url     Redis of one's own; empty = the embedded server in `home`
    node          this machine's name as a node agent
    host, port    address of the dashboard
    heartbeat     seconds between an agent's signs of life
    lease         seconds without one after which a run counts as lost
    """

    model_config = SettingsConfigDict(env_prefix="STAGEFLOW_", frozen=True)

    home: Path = Field(default_factory=lambda: user_state_path("stageflow"))
    database_url: str = ""
    redis_url: str = ""
    node: str = Field(default_factory=socket.gethostname)
    host: str = "127.0.0.1"
    port: int = 8501
    heartbeat: float = 5.0
    lease: float = 30.0

    @property
    def sql_url(self) -> str:
        return self.database_url or f"sqlite:///{self.home / 'stageflow.db'}"

    @property
    def redis_socket(self) -> Path:
        return self.home / "redis.sock"

    @property
    def broker_url(self) -> str:
        """The URL that Celery connects to."""
        return self.redis_url or f"redis+socket://{self.redis_socket}?virtual_host=0"

    @property
    def uses_embedded_redis(self) -> bool:
        return not self.redis_url

    def run_folder(self, run_id: int, attempt: int) -> Path:
        return self.home / "runs" / str(run_id) / f"attempt-{attempt}"
