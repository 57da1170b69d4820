"""Every address that OpenAPI names, called with what fits its document and what does not, by schemathesis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.utils import timezone
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.tracker.lines import line
from tracker.services import accounts
from tracker.services.accounts import Scope
from tracker.wsgi import application

schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture
def key(db: None, tmp_path: Path, settings: Any) -> str:
    settings.ALLOWED_HOSTS = ["*"]
    settings.PERFWORK_DROP = tmp_path / "drop"  # what is refused is kept there
    line(1, subsystem="mm", metric="wis.ops", machine="m1")
    return accounts.create("any", [Scope.RESULTS, Scope.JOBS], "*", timezone.now())[1]


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
def test_every_address_answers_as_its_document_says(case: Any, key: str) -> None:
    case.headers.update({"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"})
    case.call_and_validate(checks=CHECKS)


def test_the_document_names_what_takes_data() -> None:
    paths = schema.raw_schema["paths"]
    posted = sorted(path for path, operations in paths.items() if "post" in operations)
    assert len(posted) == 7
    assert "/api/v1/jobs/claim" in posted
    assert {each["name"] for each in paths["/api/v1/reports"]["get"]["parameters"]} >= {"cursor", "limit", "state"}
