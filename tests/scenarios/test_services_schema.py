"""Every answer of every service is declared: schemathesis asks what OpenAPI allows and forbids, signed and not."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from key_network import build
from requests import PreparedRequest
from requests.auth import AuthBase
from schemathesis.checks import (
    allow_header_conformance,
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from domain_world import TRACKING, numberplate
from echo_service import Echo, free_port, serving_in_a_thread
from maia import wire
from maia.domain import open_access_control
from maia.events import sign_event_type
from maia.home import Home, HomeConfig
from maia.principals import KeySigner
from maia.services import http, key_manager
from maia.services.access_control import make_access_control
from maia.testing import numberplate_network

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    allow_header_conformance,
    unsupported_method,
]
EXAMPLES = 8


class SignedAs(AuthBase):
    """Signs each request of schemathesis's inside a session, as a client does."""

    def __init__(self, service: Echo, signer: KeySigner) -> None:
        self.signer = signer
        self.session = service.handshake(signer)

    def __call__(self, prepared: PreparedRequest) -> PreparedRequest:
        """Sign one request."""
        from datetime import UTC, datetime

        body = prepared.body or b""
        sent = wire.ServiceRequest(
            method=str(prepared.method),
            url=str(prepared.url),
            body=body if isinstance(body, bytes) else body.encode(),
        )
        nonce = secrets.token_bytes(wire.NONCE_LENGTH)
        wire.sign_request(sent, self.signer, session=self.session, nonce=nonce, at=datetime.now(UTC))
        prepared.headers.update(dict(sent.headers))
        return prepared


def made_key_manager(root: Path, listening: http.Listening) -> tuple[FastAPI, KeySigner]:
    """Make PITO's key manager with its groups; PITO is its operator."""
    network = build(root)
    network.close()
    return key_manager.make_key_manager(network.homes["pito"], listening), network.people.people["PITO"]


def made_access_control(root: Path, listening: http.Listening) -> tuple[FastAPI, KeySigner]:
    """Make the Met's access control service; the Met's own key administers it."""
    network = numberplate_network()
    home = Home.create(root / "met", HomeConfig(name="met", domain="Met"))
    home.add_key("Met", network.people["Met"])
    home.types.put(sign_event_type(numberplate(network), network.people["PITO"]).raw, at=network.now)
    service = open_access_control(home)
    service.apply(TRACKING, at=network.now)
    return make_access_control(home, listening), network.people["Met"]


SERVICES = {"key manager": made_key_manager, "access control": made_access_control}


@contextmanager
def running(name: str, root: Path) -> Iterator[tuple[Echo, KeySigner, FastAPI]]:
    """Run a service in this process; give its place, who may do everything, and what it describes."""
    listening = http.Listening(port=free_port())
    app, operator = SERVICES[name](root, listening)
    with serving_in_a_thread(app, listening):
        yield Echo("", port=listening.port, server=operator), operator, app


def exercise(
    schema: Any, path: str, method: str, *, mode: schemathesis.GenerationMode, auth: SignedAs | None
) -> set[int]:
    """Ask one operation many things; every answer must be declared. Give the statuses."""
    statuses: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        statuses.add(case.call_and_validate(checks=CHECKS, auth=auth).status_code)

    with suppress(Unsatisfiable):  # what takes nothing cannot be asked wrongly
        ask()
    return statuses


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVICES)
def test_no_question_gets_an_undeclared_answer(name: str, tmp_path: Path) -> None:
    """No 5xx and nothing that OpenAPI does not list, for right and wrong questions, whoever asks."""
    with running(name, tmp_path) as (place, operator, app):
        schema = schemathesis.openapi.from_dict(app.openapi())
        schema.config.update(base_url=place.url)
        callers = {
            "operator": SignedAs(place, operator),
            "stranger": SignedAs(place, KeySigner.generate()),
            "none": None,
        }
        statuses: set[int] = set()
        for path, item in app.openapi()["paths"].items():
            for method in item:
                for mode in schemathesis.GenerationMode:
                    for auth in callers.values():
                        statuses |= exercise(schema, path, method, mode=mode, auth=auth)
        assert {200, 401, 403, 422} <= statuses
        assert max(statuses) < 500
