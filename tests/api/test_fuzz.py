"""Requests made from the API's own document, and from anything: no answer is a fault of ours."""

import re
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.api.openapi import document
from app.server.problem import Problem
from backend.codec import from_json
from tests.api.asking import JSON, ask
from tests.api.conftest import Served

DOCUMENT = document()
WAYS = [
    (path, method, way) for path, ways in DOCUMENT["paths"].items() for method, way in ways.items()
]
EDGES = [0, 1, 2, 3, 16, -1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**30]
WORDS = ["", "x", "train", "digits", "momentum", "pipedream", "gpipe", "1f1b-flush", "vgg_digits"]

anything = st.recursive(
    st.none() | st.booleans() | st.sampled_from(EDGES) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
words = st.sampled_from(WORDS) | st.text(max_size=20)


def values(schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that mostly fit the schema."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return values(DOCUMENT["components"]["schemas"][name], depth + 1)
    ways = schema.get("anyOf") or schema.get("oneOf")
    if ways:
        return st.one_of(*(values(way, depth) for way in ways))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            needed = schema.get("required", [])
            parts = {k: values(v, depth + 1) for k, v in schema["properties"].items()}
            required = {k: v for k, v in parts.items() if k in needed}
            optional = {k: v for k, v in parts.items() if k not in needed}
            return st.fixed_dictionaries(required, optional=optional)
        case "object":
            return st.dictionaries(words, words, max_size=2)
        case "array":
            items = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
            return st.lists(values(items, depth + 1), max_size=3)
        case "integer":
            return st.sampled_from(EDGES) | st.integers(0, 8)
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 0.5])
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "string" if schema.get("format") == "date-time":
            return st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
        case "string":
            return words
        case _:
            return anything


def bodies(way: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "requestBody" not in way:
        return st.none()
    schema = way["requestBody"]["content"]["application/json"]["schema"]
    return values(schema) | anything


def queries(way: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    known = {
        p["name"]: values(p["schema"]) | words for p in way["parameters"] if p["in"] == "query"
    }
    return st.fixed_dictionaries({}, optional=known)


@pytest.mark.parametrize(("path", "method", "way"), WAYS, ids=[w["operationId"] for *_, w in WAYS])
def test_no_request_brings_out_a_fault_of_ours(
    served: Served, path: str, method: str, way: dict[str, Any]
) -> None:
    @settings(max_examples=25, suppress_health_check=list(HealthCheck), database=None)
    @given(st.integers(0, 7) | st.sampled_from(EDGES), words, queries(way), bodies(way))
    def one(number: int, word: str, query: dict[str, Any], body: Any) -> None:
        place = re.sub(r"{id}", str(number), path)
        place = re.sub(r"{name}", quote(word, safe=""), place)
        asked = urlencode({k: v for k, v in query.items() if v is not None}, doseq=True)
        data = None if body is None else _bytes(body)
        answer = ask(served.url, f"{place}?{asked}" if asked else place, method.upper(), data, JSON)
        assert answer.status != 500, answer.body
        if answer.status >= 400:
            problem = from_json(Problem, answer.body)
            assert problem.status == answer.status
            assert problem.error
        else:
            assert str(answer.status) in way["responses"]

    one()


def _bytes(body: Any) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:
        return repr(body).encode(errors="replace")


@settings(max_examples=40, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=200), query=st.text(max_size=40))
def test_bytes_that_mean_nothing(served: Served, data: bytes, query: str) -> None:
    for path in ("/api/v1/runs", "/api/v1/plans/propose", "/api/v1/definitions"):
        answer = ask(served.url, f"{path}?{quote(query)}", "POST", data, JSON)
        assert 400 <= answer.status < 500
        assert from_json(Problem, answer.body).error
