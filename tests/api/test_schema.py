"""The API keeps to its own document: schemathesis makes requests of it and checks the answers."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.api.openapi import document
from tests.api.conftest import Served

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SCHEMA = schemathesis.openapi.from_dict(document())
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]
QUICK = settings(
    max_examples=8,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=[each.label for each in OPERATIONS])
def test_every_answer_is_as_the_document_says(served: Served, operation: Any) -> None:
    @QUICK
    @given(operation.as_strategy())
    def one(case: Any) -> None:
        case.call_and_validate(base_url=served.url, checks=CHECKS, timeout=240)

    one()
