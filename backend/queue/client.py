"""Celery wakes agents: a message names a run; the run itself is in the database.

Celery and Redis are imported where they are used: that takes as long as a short command does, and
most commands send nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from backend.queue.messages import LOOK, RUN, QueueUnreachable, queue_name
from backend.settings import Settings

if TYPE_CHECKING:
    from celery import Celery
    from redis import Redis

PUBLISH_SECONDS = 2.0
VISIBILITY_SECONDS = 7 * 24 * 3600


def celery_app(settings: Settings) -> "Celery":
    """The Celery application that client and agent share. Early acknowledgement without
    prefetch: with late acknowledgement a Redis that stops takes the agent down."""
    from celery import Celery

    app = Celery("stageflow", broker=settings.broker_url, set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        task_acks_late=False,
        task_default_queue=queue_name(settings.node),
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_SECONDS,
            "global_keyprefix": "stageflow:",
            "socket_keepalive": True,
            "health_check_interval": 25,
        },
    )
    return app


def redis_client(settings: Settings) -> "Redis":
    """A plain client of the same Redis, which gives up after `PUBLISH_SECONDS`."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    timeout = PUBLISH_SECONDS
    retry = Retry(NoBackoff(), 0)
    if settings.uses_embedded_redis:
        path = str(settings.redis_socket)
        return Redis(unix_socket_path=path, socket_timeout=timeout, retry=retry)
    url = settings.redis_url.replace("redis+socket://", "unix://", 1)
    return Redis.from_url(
        url.replace("virtual_host=", "db="),
        socket_connect_timeout=timeout,
        socket_timeout=timeout,
        retry=retry,
    )


def ping(settings: Settings) -> bool:
    """Does Redis answer within `PUBLISH_SECONDS`?"""
    try:
        CeleryQueue(settings).ping()
    except QueueUnreachable:
        return False
    return True


class CeleryQueue:
    """Wakes nodes' agents: a message that is lost costs time, never a run. Every method raises
    `QueueUnreachable` within about two seconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _app(self) -> "Celery":
        return celery_app(self._settings)

    def ping(self) -> None:
        with self._answering(), redis_client(self._settings) as client:
            client.ping()

    def publish(self, run_id: int, node: str) -> None:
        self._send(RUN, [run_id], node)

    def wake(self, node: str) -> None:
        """Let the node's agent look into the database now."""
        self._send(LOOK, [], node)

    def _send(self, task: str, args: list[int], node: str) -> None:
        """A fresh connection each time: a kept one may lead to a Redis that is gone."""
        self.ping()
        with self._answering(), self._connection() as connection:
            self._app.send_task(
                task,
                args=args,
                queue=queue_name(node),
                connection=connection,
                retry=False,
            )

    def _connection(self) -> Any:
        return self._app.connection_for_write(
            connect_timeout=PUBLISH_SECONDS,
            transport_options={
                "socket_connect_timeout": PUBLISH_SECONDS,
                "socket_timeout": PUBLISH_SECONDS,
                "max_retries": 1,
                "interval_start": 0,
            },
        )

    @contextmanager
    def _answering(self) -> Iterator[None]:
        from kombu.exceptions import OperationalError
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OperationalError, OSError, ValueError) as fault:
            place = self._settings.broker_place
            reason = str(fault).rpartition(f"{place}. ")[2].strip().rstrip(".")
            raise QueueUnreachable(
                f"Redis does not answer at {place}: {reason or type(fault).__name__}",
                "Start it with `stageflow up`."
                if self._settings.uses_embedded_redis
                else "Start it, or correct STAGEFLOW_REDIS_URL.",
            ) from fault
