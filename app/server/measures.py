"""What Prometheus scrapes at /metrics: runs, queue, nodes, and how long answers take."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from backend.bootstrap import Backend
from backend.errors import StageflowError
from backend.runs.pools.job import JobState
from backend.runs.pools.pool import Pool
from backend.runs.states import RunState

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

registry = CollectorRegistry()
ProcessCollector(registry=registry)
_seconds = Histogram(
    "stageflow_api_seconds",
    "Seconds until an operation of the REST API was answered",
    ["operation"],
    registry=registry,
    buckets=BUCKETS,
)
_answers = Counter(
    "stageflow_api_answers", "Answers of the REST API", ["operation", "status"], registry=registry
)
_pages = Histogram(
    "stageflow_http_seconds",
    "Seconds until an HTTP request of any kind was answered",
    ["kind"],
    registry=registry,
    buckets=BUCKETS,
)


def observe(operation: str, status: int, seconds: float) -> None:
    """Count one answer of the API."""
    _seconds.labels(operation).observe(seconds)
    _answers.labels(operation, str(status)).inc()


def observe_http(kind: str, seconds: float) -> None:
    """Count one answer of the server: "api", "page", "static", "upload", ..."""
    _pages.labels(kind).observe(seconds)


class DatabaseCollector(Collector):
    """The state of the database, asked at each scrape."""

    def __init__(self, connect: Callable[[], Backend]) -> None:
        self._connect = connect

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Without a database only `stageflow_database_up 0` is told."""
        up = GaugeMetricFamily("stageflow_database_up", "Whether the database answers")
        try:
            backend = self._connect()
            counts, nodes = backend.runs.count(), backend.nodes.list()
            held, pools, jobs = backend.runs.held(), backend.pools.list(), backend.pools.counts()
        except StageflowError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        runs = GaugeMetricFamily("stageflow_runs", "Runs by state", labels=["state"])
        for state in RunState:
            runs.add_metric([state.value], counts.get(state, 0))
        alive = [node for node in nodes if node.alive]
        devices = sum(len(node.devices) for node in alive)
        taken = sum(len(held.get(node.name, ())) for node in alive)
        yield from (
            up,
            runs,
            *_of_pools(pools, jobs),
            _gauge("stageflow_devices", "Devices of nodes alive", devices),
            _gauge("stageflow_devices_held", "Of these, those that runs hold", taken),
            _gauge("stageflow_queue_length", "Queued runs", counts.get(RunState.QUEUED, 0)),
            _gauge("stageflow_nodes", "Known nodes", len(nodes)),
            _gauge("stageflow_nodes_alive", "Nodes alive", len(alive)),
        )


def _of_pools(
    pools: Sequence[Pool], jobs: Mapping[str, Mapping[JobState, int]]
) -> Iterator[GaugeMetricFamily]:
    alive = GaugeMetricFamily("stageflow_pool_alive", "Whether jobs are submitted", labels=["pool"])
    total = GaugeMetricFamily("stageflow_pool_devices", "Devices of a pool", labels=["pool"])
    free = GaugeMetricFamily("stageflow_pool_devices_free", "Of these, no job's", labels=["pool"])
    ours = GaugeMetricFamily("stageflow_pool_jobs", "Jobs by state", labels=["pool", "state"])
    for pool in pools:
        alive.add_metric([pool.name], pool.alive and not pool.fault)
        total.add_metric([pool.name], pool.room.total)
        free.add_metric([pool.name], pool.room.free)
        for state in JobState:
            if state is not JobState.GONE:
                number = jobs.get(pool.name, {}).get(state, 0)
                ours.add_metric([pool.name, state.value], number)
    yield from (alive, total, free, ours)


def exposition(connect: Callable[[], Backend]) -> bytes:
    """Everything in Prometheus' text format."""
    asked = CollectorRegistry()
    asked.register(DatabaseCollector(connect))
    return generate_latest(asked) + generate_latest(registry)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


__all__ = ["CONTENT_TYPE", "exposition", "observe", "observe_http"]
