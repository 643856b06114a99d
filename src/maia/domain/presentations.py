"""A request as it is presented to the broker of a domain: a proven key, evidence, one operation on one object (6.01).

Rules kept here:

- all three are needed; the first that is missing names the stage of the denial;
- who decides is a broker of the network: one that cannot prove that it may connect decides nothing;
- on a network the client must be allowed to connect as well as to do what it asks for (row 5.02).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from maia.authority import Action, Decision, Presentation, Request, ask_network, decide_presentation
from maia.domain.possession import ProvenClient
from maia.errors import UsageError, VerificationError
from maia.events import TypeName
from maia.kernel import requests_for

if TYPE_CHECKING:
    from maia.domain.domain import Domain


def decide_request(
    domain: Domain,
    client: ProvenClient | None,
    evidence: Sequence[bytes] | None,
    action: str | None,
    name: TypeName | None,
    *,
    at: datetime,
) -> Decision:
    """Decide what a client presents, on the evidence that it shows and the statements that this domain has heard.

    Raises:
        VerificationError: This broker is not proven to be in the network: ``BROKER_NOT_CONNECTED``.
        MaiaError: The type is unknown here, or there is no such action.
    """
    known = domain.known(at=at)
    network = known.sessions.network
    asked: list[Request] = []
    if action is not None and name is not None:
        event_type = known.sessions.event_type(name.type_id, name.version.text, at=at)
        asked = [] if network is None else [ask_network(Action.CONNECT, *network)]
        asked += requests_for(_action(action), event_type)
    if network is not None:
        broker = domain.home.broker.public_key
        joined = known.verifier.decide(
            ask_network(Action.CONNECT, *network), principal=broker, evidence=known.pool, at=at
        )
        if not joined:
            raise VerificationError(
                "this broker is not proven to be in the network, so it decides nothing", code="BROKER_NOT_CONNECTED"
            )
    proof = None if client is None else client.proof
    shown = Presentation(authenticated=proof, evidence=evidence, request=None)
    answers = [decide_presentation(replace(shown, request=request), known.verifier, at=at) for request in asked]
    if not answers:
        return decide_presentation(shown, known.verifier, at=at)
    return next((answer for answer in answers if not answer), answers[-1])


def _action(text: str) -> Action:
    try:
        return Action(text)
    except ValueError:
        raise UsageError(f"there is no action `{text}`", code="UNKNOWN_ACTION") from None
