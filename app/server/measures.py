"""What Prometheus scrapes at /metrics: runs, queue, nodes, and how long answers take."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from backend.bootstrap import Backend
from backend.errors import StageflowError
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
        except StageflowError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        runs = GaugeMetricFamily("stageflow_runs", "Runs by state", labels=["state"])
        for state in RunState:
            runs.add_metric([state.value], counts.get(state, 0))
        yield from (
            up,
            runs,
            _gauge("stageflow_queue_length", "Queued runs", counts.get(RunState.QUEUED, 0)),
            _gauge("stageflow_nodes", "Known nodes", len(nodes)),
            _gauge("stageflow_nodes_alive", "Nodes alive", sum(node.alive for node in nodes)),
        )


def exposition(connect: Callable[[], Backend]) -> bytes:
    """Everything in Prometheus' text format."""
    asked = CollectorRegistry()
    asked.register(DatabaseCollector(connect))
    return generate_latest(asked) + generate_latest(registry)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


__all__ = ["CONTENT_TYPE", "exposition", "observe", "observe_http"]
