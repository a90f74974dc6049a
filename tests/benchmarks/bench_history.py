"""How fast runs are found again: 100,000 runs and 10,000,000 metric points, on both databases.

    python -m tests.benchmarks.bench_history [--runs 100000] [--points 100] [--database sqlite]

Rows are made by the database itself, so that filling takes a minute or two. Each query goes
through the services, as the pages' do; the figure is the median of several.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import text

from backend.bootstrap import Backend, connect
from backend.codec import to_json
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.history.listing import RunFilter, RunOrder, RunSort
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from backend.settings import Settings
from backend.storage.schema import upgrade
from tests.postgres import Postgres

PLAN = Plan("even", Partition((Stage(0, 8, (0,)), Stage(8, 16, (1,)))), "pipedream", 16)
REPEAT = 9

SERIES = {
    "sqlite": "(WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {n}) "
    "SELECT i FROM s)",
    "postgresql": "(SELECT i FROM generate_series(1::bigint, {n}) AS g(i))",
}
FALSE = {"sqlite": "0", "postgresql": "false"}
MOMENT = {
    "sqlite": "datetime('2026-01-01', '+' || (r.i * 3) || ' minutes')",
    "postgresql": "timestamptz '2026-01-01' + r.i * interval '3 minutes'",
}


def fill(backend: Backend, num_runs: int, num_points: int) -> None:
    """Runs of a hundred names, five owners and every final state, and a loss for each."""
    definition = backend.definitions.add("bench.py", b"def model(): ...\n")
    spec = to_json(RunSpec, TrainSpec(definition.id, PLAN)).decode()
    summary = to_json(RunSummary, RunSummary(accuracy=0.5, epochs=4)).decode()
    kind = backend.database.engine.dialect.name
    moment, series = MOMENT[kind], SERIES[kind].format(n=num_runs)
    json = "" if kind == "sqlite" else "::jsonb"
    runs = f"""
        INSERT INTO runs (name, kind, definition_id, spec, state, attempt, last_seq,
          cancel_requested, summary, created_at, started_at, finished_at, owner, starred, note,
          accuracy, seconds, plan_id)
        SELECT 'vgg sweep ' || (r.i % 100) || ' number ' || r.i,
          CASE WHEN r.i % 10 = 0 THEN 'profile' ELSE 'train' END, {definition.id},
          '{spec}'{json},
          CASE r.i % 50 WHEN 0 THEN 'failed' WHEN 1 THEN 'cancelled' ELSE 'succeeded' END,
          1, 0, {FALSE[kind]}, '{summary}'{json}, {moment}, {moment}, {moment},
          'person ' || (r.i % 5), r.i % 200 = 0, '',
          CASE WHEN r.i % 3 = 0 THEN NULL ELSE (r.i * 7919 % 10000) / 10000.0 END,
          (r.i * 104729 % 100000) / 10.0, r.i % 500
        FROM {series} AS r
    """
    points = f"""
        INSERT INTO metrics (run_id, name, step, epoch, value, time)
        SELECT r.i, 'loss', p.i, p.i / 25, 2.0 / p.i, r.i * 1000.0 + p.i
        FROM {series} AS r CROSS JOIN {SERIES[kind].format(n=num_points)} AS p
    """
    tags = f"INSERT INTO run_tags SELECT r.i, 'tag ' || (r.i % 20) FROM {series} AS r"
    value = "(r.i * 7919 % 10000) / 10000.0"
    reached = f"INSERT INTO run_metrics SELECT r.i, 'f1', {value} FROM {series} AS r"
    for query in (runs, tags, points, reached):
        with backend.database.write() as session:
            session.execute(text(query.replace(":", r"\:")))
    with backend.database.write() as session:
        session.execute(text("ANALYZE"))


def questions(backend: Backend, num_runs: int) -> dict[str, Callable[[], object]]:
    """What the pages ask, by name."""
    runs = backend.runs
    since = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=3 * (num_runs - 500))
    middle = num_runs // 2

    def listed(order: RunOrder | None = None, offset: int = 0, **wanted: object) -> object:
        return runs.list(RunFilter(**wanted), 20, offset, order)  # type: ignore[arg-type]

    return {
        "first page, newest first": listed,
        "page in the middle": lambda: listed(offset=middle),
        "by state (failed, 2 %)": lambda: listed(states=(RunState.FAILED,)),
        "by kind and owner": lambda: listed(kind="train", owner="person 3"),
        "by tag (5 %)": lambda: listed(tag="tag 7"),
        "starred (0.5 %)": lambda: listed(starred=True),
        "text in the name, common": lambda: listed(text="SWEEP 42"),
        "text that nothing holds": lambda: listed(text="nowhere to be found"),
        "asked for since (500 runs)": lambda: listed(since=since),
        "accuracy from 99 %": lambda: listed(min_accuracy=0.99),
        "another metric from 99 %": lambda: listed(metric="f1", min_metric=0.99),
        "sorted by accuracy": lambda: listed(RunOrder(RunSort.ACCURACY)),
        "sorted by accuracy, upwards": lambda: listed(RunOrder(RunSort.ACCURACY, False)),
        "sorted by time worked": lambda: listed(RunOrder(RunSort.SECONDS)),
        "sorted by name": lambda: listed(RunOrder(RunSort.NAME, False)),
        "filtered and sorted": lambda: listed(
            RunOrder(RunSort.ACCURACY), states=(RunState.SUCCEEDED,), kind="train", text="sweep 4"
        ),
        "one run": lambda: runs.get(middle),
        "ten runs to compare, with curves": lambda: [
            (run.id, runs.metrics.curve(run.id, "loss"))
            for run in runs.several(range(middle, middle + 10))
        ],
        "runs by state (/metrics)": runs.count,
    }


def median(ask: Callable[[], object]) -> float:
    """Milliseconds, after one that is not counted."""
    ask()
    times = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        ask()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


@contextmanager
def opened(database: str) -> Iterator[Backend]:
    """The services on an empty database of that kind."""
    with tempfile.TemporaryDirectory(prefix="stageflow-bench-") as folder:
        url = ""
        server = None
        if database == "postgresql":
            server = Postgres(Path(folder) / "pg")
            url = server.url
        settings = Settings(home=Path(folder), database_url=url)
        upgrade(settings)
        backend = connect(settings)
        try:
            yield backend
        finally:
            backend.close()
            if server:
                server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=100, help="metric points of each run")
    parser.add_argument("--database", choices=tuple(SERIES), action="append")
    given = parser.parse_args()
    for database in given.database or tuple(SERIES):
        with opened(database) as backend:
            start = time.perf_counter()
            fill(backend, given.runs, given.points)
            filled = time.perf_counter() - start
            print(
                f"{database}: {given.runs:,} runs, {given.runs * given.points:,} points, "
                f"filled in {filled:.0f} s"
            )
            for name, ask in questions(backend, given.runs).items():
                print(f"  {name:34} {median(ask):8.1f} ms", flush=True)


if __name__ == "__main__":
    main()
