"""The OpenAPI document: it is valid, has every endpoint, and the service does as it says."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks

import nescio
from nescio.service import create_app
from nescio.service._observe._openapi import document
from service.conftest import QUOTAS, TOKENS, VALUES, post, running

SCHEMA = schemathesis.openapi.from_dict(document())
CHECKS = [
    checks.not_a_server_error,
    schemathesis.specs.openapi.checks.status_code_conformance,
    schemathesis.specs.openapi.checks.content_type_conformance,
    schemathesis.specs.openapi.checks.response_schema_conformance,
    schemathesis.specs.openapi.checks.response_headers_conformance,
]


@pytest.fixture(scope="module")
def described():
    """A service that takes changes, and its application."""
    servers = {"words": nescio.Server(nescio.Table(VALUES), threads=1, party=0)}
    app = create_app(servers, party=0, quotas=QUOTAS, admin_token=TOKENS[0])
    with running(app) as url:
        yield url, app


def test_the_document_is_valid_and_served(described):
    SCHEMA.validate()
    assert httpx.get(f"{described[0]}/v1/openapi.json").json() == document()


def test_the_document_has_every_endpoint(described):
    served = {
        (route.path, method.lower())
        for route in described[1].routes
        for method in route.methods - {"HEAD"}
    }
    found = {
        (path, method)
        for path, item in document()["paths"].items()
        for method in item
        if method != "parameters"
    }
    assert found == served


@SCHEMA.parametrize()
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@pytest.mark.parametrize("name", ["words", None])
def test_requests_made_from_the_document(case, described, name):
    """Bodies, names and queries of all kinds; with the name of the table, and with others."""
    if name is not None and "name" in case.path_parameters:
        case.path_parameters["name"] = name
    case.call_and_validate(base_url=described[0], checks=CHECKS, timeout=10)


def test_an_answer_is_as_described(described, client):
    response = post(described[0], client.query([5]).keys[0])
    operation = SCHEMA["/v1/tables/{name}/answer"]["POST"]
    assert response.status_code == 200
    operation.validate_response(response)
