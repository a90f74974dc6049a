"""How the API says no: status, sentence, advice; and its documents."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from app.api.openapi import OPERATIONS
from app.api.operation import PREFIX
from app.api.reading import MAX_BODY
from backend.cluster.cluster import Device
from backend.codec import to_json
from backend.runs.pools.room import Machines, PoolRoom
from backend.services.runs.runs import RunService
from backend.settings import load_settings
from tests.api.asking import JSON, ask
from tests.api.conftest import Served
from tests.app.test_boundary import set_revision


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "said"),
    [
        ("GET", "/runs/999", None, {}, 404, "no run 999"),
        ("GET", "/runs/99999999999999999999", None, {}, 404, "is not an id"),
        ("GET", "/runs/0", None, {}, 404, "is not an id"),
        ("GET", "/plans/7", None, {}, 404, "no plan 7"),
        ("GET", "/nodes/nobody/use", None, {}, 404, "no node 'nobody'"),
        ("GET", "/nowhere", None, {}, 404, "no /api/v1/nowhere"),
        ("DELETE", "/runs", None, {}, 405, "DELETE is not offered"),
        ("GET", "/runs?limit=0", None, {}, 422, "limit"),
        ("GET", "/runs?limit=x", None, {}, 422, "limit"),
        ("GET", "/runs?state=queued", None, {}, 422, "no parameter 'state'"),
        ("GET", "/runs?states=tired", None, {}, 422, "states"),
        ("GET", "/runs/2/export?format=doc", None, {}, 422, "no export format"),
        ("POST", "/runs", b"{}", {}, 415, "application/json"),
        ("POST", "/runs", b"{", JSON, 400, "not JSON"),
        ("POST", "/runs", b'{"spec": NaN}', JSON, 400, "not JSON"),
        ("POST", "/runs", b"[]", JSON, 422, "not a JSON object"),
        ("POST", "/runs", b'{"spec": ' + b"[" * 1000 + b"]" * 1000 + b"}", JSON, 422, "nested"),
        ("POST", "/runs", b'{"specs": 1}', JSON, 422, "no field 'specs'"),
        ("POST", "/runs", b"{}", JSON, 422, "spec"),
        ("POST", "/definitions", b'{"source": "x ="}', JSON, 422, "line 1"),
        ("POST", "/definitions", b'{"zoo": "../etc"}', JSON, 404, "etc"),
    ],
)
def test_a_faulty_request(
    served: Served, method: str, path: str, body: Any, headers: Any, status: int, said: str
) -> None:
    answer = ask(served.url, PREFIX + path, method, body, headers)
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json
    assert (answer.status, told["status"]) == (status, status)
    assert said in told["error"]
    assert told["advice"] or status == 422
    if status == 405:
        assert answer.headers["allow"] == "GET, POST"


def test_a_body_that_is_too_large_is_cut_off(served: Served) -> None:
    body = b'{"source": "' + b"x" * MAX_BODY + b'"}'
    answer = ask(served.url, f"{PREFIX}/definitions", "POST", body, JSON)
    assert answer.status == 413


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"plan": 3}, "plan: Input should be an object"),
        ({"plan": {"partition": {"stages": 1}}}, "plan.planner: Field required"),
        ({"optimizer": None}, "plan: Field required"),
    ],
)
def test_a_value_of_another_kind_is_told_in_jsons_words(
    served: Served, body: dict[str, Any], said: str
) -> None:
    given = json.dumps({"profile_id": 1, "cluster": ""} | body).encode()
    assert ask(served.url, f"{PREFIX}/plans", "POST", given, JSON).json["error"] == said
    labels = ask(served.url, f"{PREFIX}/runs/2", "PATCH", b'{"tags": 1}', JSON)
    assert labels.json["error"] == "tags: Input should be a valid array"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/runs/2", "GET, PATCH, DELETE"),
        ("TRACE", "/runs", "GET, POST"),
        ("GET", "/plans/propose", "POST"),
        ("POST", "/docs", "GET, HEAD"),
    ],
)
def test_every_method_that_a_path_has_is_told(
    served: Served, method: str, path: str, allowed: str
) -> None:
    answer = ask(served.url, PREFIX + path, method)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert answer.json["advice"] == f"Use {allowed}."


@pytest.mark.parametrize("path", ["/runs", "/runs/2", "/runs/2/export?format=csv", "/docs", "/zoo"])
def test_a_head_is_a_get_without_its_body(served: Served, path: str) -> None:
    head, whole = (ask(served.url, PREFIX + path, method) for method in ("HEAD", "GET"))
    assert (head.status, head.body) == (200, b"")
    for name in ("content-type", "content-length"):
        assert head.headers[name] == whole.headers[name]


def test_neither_a_service_nor_the_json_holds_up_the_event_loop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def noting(work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any) -> Any:
            threads.append(threading.current_thread().name)
            return work(*given)

        return noted

    monkeypatch.setattr(RunService, "get", noting(RunService.get))
    monkeypatch.setattr("app.api.operation.to_json", noting(to_json))
    assert ask(served.url, f"{PREFIX}/runs/2").status == 200
    first, second = threads
    assert first == second
    assert "AnyIO worker" in first


def test_an_outdated_database_is_said(served: Served) -> None:
    from app.server import connection

    connection._connected.cache_clear()
    needed = ask(served.url, "/metrics").body
    assert b"stageflow_database_up 1.0" in needed
    connection._connected.cache_clear()
    head = "0000"
    before = _revision()
    set_revision(head)
    try:
        answer = ask(served.url, f"{PREFIX}/runs")
        assert answer.status == 503
        assert "stageflow db upgrade" in answer.json["advice"] or "newer" in answer.json["advice"]
        assert b"stageflow_database_up 0.0" in ask(served.url, "/metrics").body
    finally:
        set_revision(before)


def _revision() -> str:
    from backend.storage.revision import current

    return str(current(load_settings())[0])


def test_the_document_describes_every_operation(served: Served) -> None:
    document = ask(served.url, f"{PREFIX}/openapi.json").json
    ways = {way["operationId"] for path in document["paths"].values() for way in path.values()}
    assert ways == {operation.name for operation in OPERATIONS}
    text = json.dumps(document)
    known = set(document["components"]["schemas"])
    assert {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]} <= known
    run = document["components"]["schemas"]["Run"]["properties"]
    assert {"id", "state", "tags", "summary"} <= set(run)


def test_the_page_for_people_needs_nobody_else(served: Served) -> None:
    answer = ask(served.url, f"{PREFIX}/docs")
    page = answer.body.decode()
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "<script" not in page
    assert "https://" not in page
    assert all(f'id="{operation.name}"' in page for operation in OPERATIONS)


def test_prometheus_finds_runs_queue_nodes_and_latencies(served: Served) -> None:
    ask(served.url, f"{PREFIX}/nodes")
    room = PoolRoom((Machines(Device("h100"), 4, (4, 1)),))
    served.backend.pools.beat("gpu", "slurm", room)
    served.backend.nodes.beat("node-9", (Device("cpu"),) * 3)
    text = ask(served.url, "/metrics").body.decode()
    assert 'stageflow_runs{state="failed"} 1.0' in text
    assert 'stageflow_runs{state="starting"} 0.0' in text
    assert "stageflow_queue_length 1.0" in text
    assert "stageflow_nodes_alive 2.0" in text
    assert "stageflow_devices 3.0" in text  # the seeded node has not said what it has
    assert "stageflow_devices_held 2.0" in text
    assert 'stageflow_pool_alive{pool="gpu"} 1.0' in text
    assert 'stageflow_pool_devices{pool="gpu"} 8.0' in text
    assert 'stageflow_pool_devices_free{pool="gpu"} 5.0' in text
    assert 'stageflow_pool_jobs{pool="gpu",state="held"} 0.0' in text
    assert 'stageflow_api_seconds_count{operation="list_nodes"}' in text
    assert "stageflow_http_seconds" in text
